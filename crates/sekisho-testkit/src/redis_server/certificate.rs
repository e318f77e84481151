//! Certificates for one test: an authority of its own and what it signed for a server on this machine.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, Error, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};

/// Files that a server is configured with; and the authority, which its clients are to trust.
#[derive(Debug)]
pub(crate) struct Certificates {
    pub(crate) authority_pem: String,
    pub(crate) authority_file: PathBuf,
    pub(crate) certificate_file: PathBuf,
    pub(crate) key_file: PathBuf,
}

impl Certificates {
    /// Makes them for 127.0.0.1 and localhost, and writes them into `folder`.
    pub(crate) fn make(folder: &Path) -> Self {
        let [authority_pem, certificate, key] = pems().expect("fixed names can be certified");
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).expect("the server's folder takes files");
            path
        };
        Self {
            authority_file: file("authority.pem", &authority_pem),
            certificate_file: file("certificate.pem", &certificate),
            key_file: file("key.pem", &key),
            authority_pem,
        }
    }
}

fn pems() -> Result<[String; 3], Error> {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "Sekisho test authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let mut server = CertificateParams::new(["localhost".to_owned()])?;
    server.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    server.distinguished_name.push(DnType::CommonName, "Sekisho test server");
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &Issuer::from_params(&authority, &authority_key))?;
    Ok([authority_pem, certificate.pem(), key.serialize_pem()])
}
