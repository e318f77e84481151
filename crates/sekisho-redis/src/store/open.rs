//! The store that a policy file names.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use sekisho::{SharedStoreSettings, StoreError};

use super::{RedisOptions, RedisStore};

/// The longest file of a password, in bytes.
const PASSWORD_BYTES_MAX: usize = 64 * 1_024;
/// The longest file of certificates, in bytes: every root that a system knows is less than a megabyte.
const CA_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// Why a store cannot be had. What is away now is no such reason: each policy says what happens then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A file that `[store]` names cannot be read.
    #[error("`{field}` of `[store]`: {path}")]
    File {
        /// The field.
        field: &'static str,
        /// The path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What a file holds is of no use.
    #[error("`{field}` of `[store]`: {path} {what}")]
    Content {
        /// The field.
        field: &'static str,
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The store cannot be set up as the file says.
    #[error("the store of `[store]` cannot be set up")]
    Setup(#[from] StoreError),
}

impl RedisStore {
    /// Returns the store that a policy file names, and asks it for nothing yet. Reads the files of its password and its
    /// certificates.
    ///
    /// ```
    /// use sekisho::{Limiter, PolicySet};
    /// use sekisho_redis::RedisStore;
    ///
    /// let policies = PolicySet::parse(r#"
    ///     [store]
    ///     url = "redis://127.0.0.1:6379"
    ///     [[policy]]
    ///     name = "api"
    ///     key = ["ip"]
    ///     limits = ["60/min"]
    /// "#)?;
    /// let shared = policies.settings().store.shared.as_ref().ok_or("this file counts in memory")?;
    /// let store = RedisStore::open(shared)?;
    /// let limiter = Limiter::with_store(policies, store);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`OpenError`] when a file that it needs is not there or holds nothing of use, or TLS cannot be set up.
    pub fn open(settings: &SharedStoreSettings) -> Result<Self, OpenError> {
        let password = settings.password_file.as_deref().map(password).transpose()?;
        let roots = settings.ca_file.as_deref().map(|path| read("ca_file", path, CA_BYTES_MAX));
        let options = RedisOptions {
            prefix: settings.prefix.clone(),
            timeout: settings.timeout,
            password,
            roots: roots.transpose()?,
        };
        Ok(Self::at(&settings.addresses, options)?)
    }
}

/// Reads a password: what the file holds, but for the end of its line.
fn password(path: &Path) -> Result<String, OpenError> {
    let field = "password_file";
    let wrong = |what| OpenError::Content { field, path: path.to_owned(), what };
    let bytes = read(field, path, PASSWORD_BYTES_MAX)?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8"))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let password = line.strip_suffix('\r').unwrap_or(line);
    if password.is_empty() { Err(wrong("is empty")) } else { Ok(password.to_owned()) }
}

fn read(field: &'static str, path: &Path, bytes_max: usize) -> Result<Vec<u8>, OpenError> {
    let failed = |source| OpenError::File { field, path: path.to_owned(), source };
    let length = fs::metadata(path).map_err(failed)?.len();
    if usize::try_from(length).map_or(true, |length| length > bytes_max) {
        return Err(OpenError::Content { field, path: path.to_owned(), what: "is too long" });
    }
    fs::read(path).map_err(failed)
}
