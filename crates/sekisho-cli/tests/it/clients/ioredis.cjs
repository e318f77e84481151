// What a program does with ioredis: connect, ask, ask in a pipeline, be refused.
const assert = require("node:assert");
const { Redis } = require("ioredis");

async function main(port) {
  const client = new Redis(port, "127.0.0.1", { connectionName: "tests", maxRetriesPerRequest: 1 });
  assert.deepStrictEqual(await client.call("CL.THROTTLE", "js", 1, 2, 60), [0, 2, 1, -1, 30]);
  const pipeline = client.pipeline();
  for (let i = 0; i < 3; i += 1) pipeline.call("CL.THROTTLE", "js", 1, 2, 60);
  const replies = (await pipeline.exec()).map(([error, reply]) => [error, ...reply.slice(0, 3)]);
  assert.deepStrictEqual(replies, [[null, 0, 2, 0], [null, 1, 2, 0], [null, 1, 2, 0]]);
  await assert.rejects(client.call("CL.THROTTLE", "js", 1, 0, 60), /Zero rates/);
  assert.strictEqual(await client.del("js"), 1);
  await client.quit();
  console.log("ok");
}

main(Number(process.argv[2]));
