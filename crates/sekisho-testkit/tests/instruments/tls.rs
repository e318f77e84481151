//! A server's second port, under a certificate of the test's own.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use sekisho_testkit::redis_server::RedisServer;

fn ping(server: &RedisServer, roots: RootCertStore, name: &str) -> io::Result<String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let client = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let stream = TcpStream::connect(("127.0.0.1", server.tls_port()))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut stream = StreamOwned::new(client, stream);
    stream.write_all(b"PING\r\n")?;
    let mut reply = [0; 7];
    stream.read_exact(&mut reply)?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

fn trusting(pem: &str) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    roots
}

#[test]
fn its_certificate_is_trusted_by_who_trusts_its_authority() {
    let mut server = RedisServer::builder().tls().start();
    let other = RedisServer::builder().tls().start();
    for _ in 0..2 {
        let roots = trusting(server.authority_pem());
        for name in ["127.0.0.1", "localhost"] {
            assert_eq!(ping(&server, roots.clone(), name).unwrap(), "+PONG\r\n");
        }
        ping(&server, roots.clone(), "example.org").unwrap_err();
        ping(&other, roots, "127.0.0.1").unwrap_err();
        server.restart();
    }
    assert_eq!(server.tls_url(), format!("rediss://127.0.0.1:{}/", server.tls_port()));
    // The other port stays.
    let mut plain = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    plain.write_all(b"PING\r\n").unwrap();
    let mut reply = [0; 7];
    plain.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+PONG\r\n");
}
