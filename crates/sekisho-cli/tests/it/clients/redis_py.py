# What a program does with redis-py: connect, ask, ask in a pipeline, be refused.
import sys

import redis

port = int(sys.argv[1])
for protocol in (2, 3):
    client = redis.Redis(port=port, protocol=protocol, client_name="tests")
    key = f"py{protocol}"
    assert client.ping()
    assert client.execute_command("CL.THROTTLE", key, 1, 2, 60) == [0, 2, 1, -1, 30]
    with client.pipeline(transaction=False) as pipeline:
        for _ in range(3):
            pipeline.execute_command("CL.THROTTLE", key, 1, 2, 60)
        first, second, third = pipeline.execute()
    assert first[:3] == [0, 2, 0], first
    assert second[:3] == third[:3] == [1, 2, 0], (second, third)
    assert 29 <= second[3] <= 30, second
    try:
        client.execute_command("CL.THROTTLE", key, 1, 0, 60)
        raise SystemExit("no error")
    except redis.ResponseError as error:
        assert "Zero rates" in str(error), error
    assert client.delete(key) == 1
print("ok")
