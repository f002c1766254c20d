//! Files of credentials, of the kinds that Google Cloud writes: <https://docs.cloud.google.com/docs/authentication>.
//!
//! **Invariant:** no error quotes what is in a file, but for the word of its type.

use std::path::{Path, PathBuf};
use std::{io, iter};

use google_cloud_auth::build_errors;
use google_cloud_auth::credentials::service_account::AccessSpecifier;
use google_cloud_auth::credentials::{Credentials, external_account, service_account, user_account};
use secrecy::SecretString;
use serde_json::Value;

use crate::bounded::json;

/// What an access token may do: all that its owner may.
pub(super) const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// 40 characters of a type that nobody knows.
const MAX_TYPE_CHARS: usize = 40;

/// Fields of files whose text is secret.
const SECRETS: [&str; 3] = ["client_secret", "private_key", "refresh_token"];

/// 8 bytes: what is shorter is no secret, and would be found in any sentence.
const MIN_SECRET_BYTES: usize = 8;

/// Whose credentials they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Of a service: it signs its tokens itself, with its key.
    ServiceAccount,
    /// Of a user, as `gcloud auth application-default login` writes them.
    AuthorizedUser,
    /// Of somebody whom another service vouches for: workload identity federation.
    ExternalAccount,
}

impl Kind {
    const ALL: [Self; 3] = [Self::ServiceAccount, Self::AuthorizedUser, Self::ExternalAccount];

    /// The type that a file gives.
    fn name(self) -> &'static str {
        match self {
            Self::ServiceAccount => "service_account",
            Self::AuthorizedUser => "authorized_user",
            Self::ExternalAccount => "external_account",
        }
    }

    /// The texts that it needs.
    fn texts(self) -> &'static [&'static str] {
        match self {
            Self::ServiceAccount => &["client_email", "private_key_id", "private_key", "project_id"],
            Self::AuthorizedUser => &["client_id", "client_secret", "refresh_token"],
            Self::ExternalAccount => &["audience", "subject_token_type", "token_url"],
        }
    }
}

/// A file of credentials. Has no `Debug`: it holds secrets.
pub(super) struct CredentialFile {
    pub(super) kind: Kind,
    json: Value,
}

/// What is secret in a word of who vouches for somebody: a text, or an object with it.
pub(super) fn secrets_of_subject(word: &str) -> Vec<SecretString> {
    let object = json::value_of(word.as_bytes()).unwrap_or_default();
    secret(iter::once(word.trim()).chain(texts(&object)))
}

/// The texts in an object.
fn texts(object: &Value) -> impl Iterator<Item = &str> {
    object.as_object().into_iter().flat_map(|fields| fields.values()).filter_map(Value::as_str)
}

fn secret<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<SecretString> {
    texts.filter(|text| text.len() >= MIN_SECRET_BYTES).map(SecretString::from).collect()
}

/// Why a file is none that can be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("{path} cannot be read: {error}")]
    Unreadable { path: String, error: io::Error },
    #[error("{path} has no JSON object")]
    NoObject { path: String },
    #[error("{path} names no type; it must be one of {}", kinds())]
    NoType { path: String },
    #[error("{path} is of the type {kind:?}; it must be one of {}", kinds())]
    Kind { path: String, kind: String },
    #[error("{path} lacks {field:?}, which credentials of the type {kind} have")]
    Lacks { path: String, field: &'static str, kind: &'static str },
}

fn kinds() -> String {
    Kind::ALL.map(Kind::name).join(", ")
}

impl CredentialFile {
    /// The file at `path`, which has `bytes`, or could not be read.
    ///
    /// # Errors
    /// When it is none that can be used.
    pub(super) fn parse(path: &Path, bytes: io::Result<Vec<u8>>) -> Result<Self, FileError> {
        let path = || path.display().to_string();
        let bytes = bytes.map_err(|error| FileError::Unreadable { path: path(), error })?;
        let json = json::value_of(&bytes).ok().filter(Value::is_object);
        let json = json.ok_or_else(|| FileError::NoObject { path: path() })?;
        let Some(name) = json["type"].as_str() else { return Err(FileError::NoType { path: path() }) };
        let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == name) else {
            return Err(FileError::Kind { path: path(), kind: name.chars().take(MAX_TYPE_CHARS).collect() });
        };
        let lacks = |field| FileError::Lacks { path: path(), field, kind: kind.name() };
        let is_text = |field: &str| json[field].as_str().is_some_and(|text| !text.is_empty());
        if let Some(field) = kind.texts().iter().copied().find(|field| !is_text(field)) {
            return Err(lacks(field));
        }
        if kind == Kind::ExternalAccount && !json["credential_source"].is_object() {
            return Err(lacks("credential_source"));
        }
        Ok(Self { kind, json })
    }

    /// The project that it belongs to, where it says so.
    pub(super) fn project(&self) -> Option<&str> {
        ["project_id", "quota_project_id"].iter().find_map(|key| self.json[*key].as_str())
    }

    /// What is secret in it, also of what is sent to who vouches for it.
    pub(super) fn secrets(&self) -> Vec<SecretString> {
        let own = SECRETS.iter().filter_map(|key| self.json[*key].as_str());
        secret(own.chain(texts(&self.json["credential_source"]["headers"])))
    }

    /// The file with the word of who vouches for it, which is sent for a token.
    pub(super) fn subject(&self) -> Option<PathBuf> {
        self.json["credential_source"]["file"].as_str().map(PathBuf::from)
    }

    /// The credentials in it. A user's requests are counted for the project that the file says, or else for `project`.
    ///
    /// Their first token is fetched at once, by a task of theirs: only within a runtime.
    ///
    /// # Errors
    /// When something in it is not as it has to be.
    pub(super) fn credentials(self, project: &str) -> Result<Credentials, build_errors::Error> {
        let counts_itself = self.json["quota_project_id"].is_string();
        match self.kind {
            Kind::ServiceAccount => {
                let specifier = AccessSpecifier::from_scopes([SCOPE]);
                service_account::Builder::new(self.json).with_access_specifier(specifier).build()
            }
            Kind::AuthorizedUser => {
                let user = user_account::Builder::new(self.json).with_scopes([SCOPE]);
                if counts_itself { user.build() } else { user.with_quota_project_id(project).build() }
            }
            Kind::ExternalAccount => external_account::Builder::new(self.json).with_scopes([SCOPE]).build(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(text: &str) -> Result<CredentialFile, String> {
        CredentialFile::parse(Path::new("/keys/k.json"), Ok(text.as_bytes().to_vec()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_of_no_kind_is_refused_with_a_sentence() {
        let kinds = "service_account, authorized_user, external_account";
        let rows = [
            ("", "has no JSON object".to_owned()),
            ("[]", "has no JSON object".to_owned()),
            ("{\"type\":", "has no JSON object".to_owned()),
            ("{}", format!("names no type; it must be one of {kinds}")),
            (r#"{"type": 7}"#, format!("names no type; it must be one of {kinds}")),
            // What a client of OAuth downloads.
            (r#"{"installed": {"client_id": "x"}}"#, format!("names no type; it must be one of {kinds}")),
            (
                r#"{"type": "impersonated_service_account"}"#,
                format!("is of the type \"impersonated_service_account\"; it must be one of {kinds}"),
            ),
            (
                r#"{"type": "gdch_service_account"}"#,
                format!("is of the type \"gdch_service_account\"; it must be one of {kinds}"),
            ),
            (
                r#"{"type": "authorized_user", "client_id": "c", "client_secret": "", "refresh_token": "r"}"#,
                "lacks \"client_secret\", which credentials of the type authorized_user have".to_owned(),
            ),
            (
                r#"{"type": "external_account", "audience": "a", "subject_token_type": "t", "token_url": "u"}"#,
                "lacks \"credential_source\", which credentials of the type external_account have".to_owned(),
            ),
        ];
        for (text, words) in rows {
            assert_eq!(parsed(text).err().unwrap(), format!("/keys/k.json {words}"), "{text}");
        }
        let long = json!({"type": "x".repeat(500)}).to_string();
        assert!(parsed(&long).err().unwrap().len() < 200);
        let away = CredentialFile::parse(Path::new("/keys/k.json"), Err(io::ErrorKind::NotFound.into()));
        assert_eq!(away.err().unwrap().to_string(), "/keys/k.json cannot be read: entity not found");
    }

    #[test]
    fn each_kind_is_known_with_its_project_and_its_secrets() {
        let rows = [
            (
                json!({"type": "service_account", "client_email": "a@b", "private_key_id": "1", "private_key": "-----BEGIN", "project_id": "p"}),
                (Kind::ServiceAccount, Some("p"), 1),
            ),
            (
                json!({"type": "authorized_user", "client_id": "c", "client_secret": "secret-of-c", "refresh_token": "1//refresh", "quota_project_id": "q"}),
                (Kind::AuthorizedUser, Some("q"), 2),
            ),
            (
                json!({"type": "external_account", "audience": "a", "subject_token_type": "t", "token_url": "u", "credential_source": {"file": "/x"}}),
                (Kind::ExternalAccount, None, 0),
            ),
        ];
        for (json, expected) in rows {
            let file = parsed(&json.to_string()).unwrap();
            assert_eq!((file.kind, file.project(), file.secrets().len()), expected);
        }
    }
}
