//! How servers behind TLS are checked.

use std::sync::Arc;

use sekisho::StoreError;
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};

/// Returns the settings: the given certificates, or the machine's own.
pub(super) fn config(pem: Option<&[u8]>) -> Result<Arc<ClientConfig>, StoreError> {
    let unusable = |why: String| StoreError::Unavailable(why.into());
    let mut roots = RootCertStore::empty();
    match pem {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate
                    .map_err(|error| unusable(format!("the certificates are no PEM: {error}")))?;
                roots.add(certificate).map_err(|error| {
                    unusable(format!("one of the certificates cannot be used: {error}"))
                })?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(unusable("there is no certificate to check servers with".to_owned()));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(format!("TLS cannot be set up: {error}")))?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}
