//! The same model behind TLS, as every hosted one is.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What a model's connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    Plain,
    Tls,
}

/// A certificate for `localhost`, and the authority that made it, by the program `openssl`.
pub struct Certificate(TempDir);

impl Certificate {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let openssl = |line: &str| {
            let words = line.split_whitespace();
            let done = Command::new("openssl").args(words).current_dir(&folder).stderr(Stdio::null()).status().unwrap();
            assert!(done.success(), "openssl {line}");
        };
        let make = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
        openssl(&format!("{make} -subj /CN=bench -keyout authority.key -out authority.pem"));
        let names = "-subj /CN=localhost -addext subjectAltName=DNS:localhost -addext basicConstraints=CA:FALSE";
        openssl(&format!("{make} {names} -CA authority.pem -CAkey authority.key -keyout server.key -out server.pem"));
        Self(folder)
    }

    /// The authority's certificate as a file, for whoever is to trust it.
    pub fn authority(&self) -> PathBuf {
        self.0.path().join("authority.pem")
    }

    /// Who takes connections.
    pub fn acceptor(&self) -> TlsAcceptor {
        let certificate = CertificateDer::from_pem_file(self.0.path().join("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.0.path().join("server.key")).unwrap();
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key);
        Arc::new(config.unwrap()).into()
    }
}
