//! What a token says, judged: header and claims against the rules of its issuer, at a time. Pure.
//!
//! The signature is verified elsewhere; nothing here is believed before it has been verified.

use std::borrow::Cow;
use std::fmt;

use jsonwebtoken::Header;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::agent::ports::identity::AuthError;
use crate::chat::caller::{Bearer, Caller, ISSUER_SEPARATOR, Owner};

/// 256 bytes of a user or a tenant: they are columns of indexes.
pub(super) const MAX_NAME_BYTES: usize = 256;

/// Later than all calendars, in seconds.
const END_OF_TIME_S: f64 = u64::MAX as f64;

/// What tokens of one issuer must say, and what their claims are called.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    /// The `iss`; empty is any.
    pub(super) issuer: String,
    /// One of these must be an audience; none is any.
    pub(super) audiences: Vec<String>,
    /// The claim with the audiences.
    pub(super) audience_claim: String,
    /// The header's `typ`; empty is any.
    pub(super) typ: String,
    /// Seconds that clocks may differ.
    pub(super) leeway_s: u64,
    /// The tenants of its users.
    pub(super) tenants: Tenants,
    /// The claim with the tenant.
    pub(super) tenant_claim: String,
    /// The claim with the roles.
    pub(super) roles_claim: String,
    /// The claim with what front ends call the user by; empty is none.
    pub(super) known_as_claim: String,
    /// The roles that are believed; none is all.
    pub(super) roles: Vec<String>,
    /// Whether they must name a tenant.
    pub(super) requires_tenant: bool,
}

/// How a tenant becomes an owner's. **Invariant:** no two issuers have a tenant in common.
#[derive(Debug, Clone)]
pub(super) enum Tenants {
    /// As the claim says.
    Claimed,
    /// Of a named issuer, whose name stands before them; fixed where the configuration sets it.
    Of {
        /// The issuer's name in the settings.
        name: String,
        /// The tenant of all its users.
        fixed: Option<String>,
    },
}

/// Claims as they were signed. Two of one name are a mistake: whoever signed meant one of them.
#[derive(Debug)]
pub(super) struct Claims(pub(super) Map<String, Value>);

impl Rules {
    /// Whether the header asks for nothing that is not done here.
    ///
    /// # Errors
    /// When it demands an extension or a type that is not supported.
    pub(super) fn check_header(&self, header: &Header) -> Result<(), AuthError> {
        // RFC 7515, section 4.1.11: what is critical has to be understood, and no extension is.
        if header.crit.is_some() {
            return Err(AuthError::Invalid("it has critical extensions"));
        }
        if header.extras.inner().get("b64").is_some_and(|encoded| *encoded != Value::Bool(true)) {
            return Err(AuthError::Invalid("its payload is not encoded"));
        }
        if header.enc.is_some() || header.zip.is_some() {
            return Err(AuthError::Invalid("it is encrypted or compressed"));
        }
        // RFC 7515, section 4.1.9: `application/` may be left out, and case does not matter.
        let plain = |typ: &str| typ.to_ascii_lowercase().trim_start_matches("application/").to_owned();
        match header.typ.as_deref() {
            _ if self.typ.is_empty() => Ok(()),
            Some(typ) if plain(typ) == plain(&self.typ) => Ok(()),
            Some(_) | None => Err(AuthError::Invalid("it is of another type")),
        }
    }

    /// The caller whom `claims` describe at `now_ms`.
    ///
    /// # Errors
    /// When they are of another issuer or for another audience, expired or not yet valid, or name no user.
    pub(super) fn caller(&self, claims: &Map<String, Value>, now_ms: i64, token: &str) -> Result<Caller, AuthError> {
        self.check_origin(claims)?;
        self.check_times(claims, now_ms)?;
        let expires_at_ms = claims.get("exp").and_then(millis).and_then(|ends| i64::try_from(ends).ok());
        let user = match claims.get("sub").and_then(name) {
            // With the separator in it, it could be read as a user whom a front end names.
            Some(user) if user.contains(ISSUER_SEPARATOR) => return Err(AuthError::Invalid("sub is no name")),
            Some(user) if !user.trim().is_empty() && user.len() <= MAX_NAME_BYTES => user.into_owned(),
            Some(_) | None => return Err(AuthError::Invalid("sub is empty or too long")),
        };
        let known_as = at(claims, &self.known_as_claim).filter(|_| !self.known_as_claim.is_empty()).and_then(name);
        let known_as = known_as.filter(|known_as| known_as.len() <= MAX_NAME_BYTES).map(Cow::into_owned);
        let owner = Owner { tenant: self.tenant(claims)?, user };
        if self.requires_tenant && owner.tenant_name().is_none() {
            return Err(AuthError::NoTenant);
        }
        let mut roles: Vec<String> = match at(claims, &self.roles_claim) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(roles)) => roles.split_whitespace().map(str::to_owned).collect(),
            Some(Value::Array(roles)) => roles.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Some(_) => return Err(AuthError::Invalid("the roles claim is not a list")),
        };
        if !self.roles.is_empty() {
            roles.retain(|role| self.roles.contains(role));
        }
        Ok(Caller { owner, known_as, expires_at_ms, roles, bearer: Bearer::new(token), cookie: None })
    }

    fn check_origin(&self, claims: &Map<String, Value>) -> Result<(), AuthError> {
        if !self.issuer.is_empty() && claims.get("iss").and_then(Value::as_str) != Some(self.issuer.as_str()) {
            return Err(AuthError::Invalid("its issuer is not accepted"));
        }
        if self.audiences.is_empty() {
            return Ok(());
        }
        let is_ours = |audience: &str| self.audiences.iter().any(|ours| ours == audience);
        let named = match at(claims, &self.audience_claim) {
            None | Some(Value::Null) => return Err(AuthError::Invalid("a required claim is missing")),
            Some(Value::String(audience)) => is_ours(audience),
            Some(Value::Array(audiences)) => {
                audiences.iter().all(Value::is_string) && audiences.iter().filter_map(Value::as_str).any(is_ours)
            }
            Some(_) => false,
        };
        if named { Ok(()) } else { Err(AuthError::Invalid("its audience is not accepted")) }
    }

    fn check_times(&self, claims: &Map<String, Value>, now_ms: i64) -> Result<(), AuthError> {
        let time = |claim: &str| match claims.get(claim) {
            None => Ok(None),
            Some(value) => millis(value).map(Some).ok_or(AuthError::Invalid("a claim has the wrong type")),
        };
        let (now_ms, leeway_ms) = (i128::from(now_ms), i128::from(self.leeway_s) * 1000);
        let (ends, begins, issued) = (time("exp")?, time("nbf")?, time("iat")?);
        let Some(ends) = ends else { return Err(AuthError::Invalid("a required claim is missing")) };
        // RFC 7519, section 4.1.4: on or after `exp` it is over.
        if now_ms >= ends + leeway_ms {
            return Err(AuthError::Expired);
        }
        if begins.is_some_and(|begins| begins > now_ms + leeway_ms) {
            return Err(AuthError::Invalid("it is not valid yet"));
        }
        if issued.is_some_and(|issued| issued > now_ms + leeway_ms) {
            return Err(AuthError::Invalid("it was issued in the future"));
        }
        Ok(())
    }

    fn tenant(&self, claims: &Map<String, Value>) -> Result<String, AuthError> {
        let claimed = || match at(claims, &self.tenant_claim) {
            None | Some(Value::Null) => Ok(String::new()),
            // With the separator in it, it could be read as another issuer's.
            Some(claim) => name(claim)
                .filter(|tenant| tenant.len() <= MAX_NAME_BYTES && !tenant.contains(ISSUER_SEPARATOR))
                .filter(|tenant| tenant.is_empty() || !tenant.trim().is_empty())
                .map(Cow::into_owned)
                .ok_or(AuthError::Invalid("the tenant claim is neither a short string nor a whole number")),
        };
        match &self.tenants {
            Tenants::Claimed => claimed(),
            Tenants::Of { name, fixed: Some(tenant) } => Ok(format!("{name}{ISSUER_SEPARATOR}{tenant}")),
            Tenants::Of { name, fixed: None } => Ok(format!("{name}{ISSUER_SEPARATOR}{}", claimed()?)),
        }
    }
}

/// The name in a claim: a text, or a whole number as its decimal text. A number with a fraction or an exponent is none, nor
/// is one beyond 64 bits: two of them could be read as the same.
fn name(claim: &Value) -> Option<Cow<'_, str>> {
    match claim {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) if number.is_u64() || number.is_i64() => Some(Cow::Owned(number.to_string())),
        _ => None,
    }
}

/// The claim at `path`: one of that very name, or else one in an object on the way, such as `realm_access.roles`.
fn at<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    claims.get(path).or_else(|| {
        path.match_indices('.').find_map(|(dot, _)| at(claims.get(&path[..dot])?.as_object()?, &path[dot + 1..]))
    })
}

/// Seconds since 1970, a fraction allowed (RFC 7519, section 2), as milliseconds.
fn millis(value: &Value) -> Option<i128> {
    let number = value.as_number()?;
    if let Some(seconds) = number.as_u64() {
        return Some(i128::from(seconds) * 1000);
    }
    let seconds = number.as_f64()?;
    (0.0..END_OF_TIME_S).contains(&seconds).then_some((seconds * 1000.0) as i128)
}

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Once::deserialize(deserializer)?.0 {
            Value::Object(claims) => Ok(Self(claims)),
            _ => Err(D::Error::custom("claims are an object")),
        }
    }
}

/// A JSON value in which no object has two fields of one name.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OnceVisitor)
    }
}

struct OnceVisitor;

impl<'de> Visitor<'de> for OnceVisitor {
    type Value = Once;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Once, E> {
        Ok(Once(Value::Null))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Once, E> {
        Ok(Once(Value::Bool(truth)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Once, E> {
        Ok(Once(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Once, E> {
        Ok(Once(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Once, E> {
        Ok(Once(Number::from_f64(number).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Once, E> {
        Ok(Once(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Once, A::Error> {
        let mut list = Vec::new();
        while let Some(Once(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Once(Value::Array(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Once, A::Error> {
        let mut object = Map::new();
        while let Some((name, Once(value))) = fields.next_entry::<String, Once>()? {
            if object.insert(name, value).is_some() {
                return Err(A::Error::custom("a field is there twice"));
            }
        }
        Ok(Once(Value::Object(object)))
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{Algorithm, Header};
    use serde_json::{Value, json};

    use super::{Rules, Tenants};
    use crate::agent::ports::identity::AuthError;

    /// 2025-11-14, in seconds.
    const NOW: i64 = 1_763_100_000;

    fn rules() -> Rules {
        Rules {
            issuer: String::new(),
            audiences: Vec::new(),
            audience_claim: "aud".to_owned(),
            typ: String::new(),
            leeway_s: 30,
            tenants: Tenants::Claimed,
            tenant_claim: "tenant".to_owned(),
            roles_claim: "roles".to_owned(),
            known_as_claim: String::new(),
            roles: Vec::new(),
            requires_tenant: false,
        }
    }

    fn judged(claims: &Value, now_ms: i64) -> Result<(), AuthError> {
        let rules = rules();
        rules.check_header(&Header::new(Algorithm::HS256))?;
        rules.caller(claims.as_object().unwrap(), now_ms, "t").map(drop)
    }

    #[test]
    fn an_issuer_gives_the_roles_that_are_its_own_to_give() {
        let rows = [
            (vec![], json!(["USER", "platform_admin"]), vec!["USER", "platform_admin"], "all of them"),
            (vec!["USER"], json!(["USER", "platform_admin"]), vec!["USER"], "one of them"),
            (vec!["USER"], json!("platform_admin USER"), vec!["USER"], "of a text too"),
            (vec!["USER"], json!(["user", "USER "]), vec![], "names are compared whole"),
        ];
        for (accepted, claimed, expected, reason) in rows {
            let rules = Rules { roles: accepted.into_iter().map(str::to_owned).collect(), ..rules() };
            let claims = json!({"sub": "ann", "exp": NOW + 60, "roles": claimed});
            let caller = rules.caller(claims.as_object().unwrap(), NOW * 1000, "t").unwrap();
            assert_eq!(caller.roles, expected, "{reason}");
        }
    }

    /// The product's clock is passed in here, so the borders are those of a millisecond.
    #[test]
    fn times_are_judged_to_the_millisecond_whatever_the_clock_does() {
        let (expired, early) = (Err(AuthError::Expired), Err(AuthError::Invalid("it is not valid yet")));
        let future = Err(AuthError::Invalid("it was issued in the future"));
        let hour = 3_600_000;
        let rows = [
            (json!({"exp": NOW}), 29_999, Ok(()), "over for less than the leeway"),
            (json!({"exp": NOW}), 30_000, expired.clone(), "over for as long as it"),
            (json!({"exp": NOW}), 31_000, expired.clone(), "for longer"),
            (json!({"exp": NOW as f64 + 0.5}), 30_499, Ok(()), "half a second more"),
            (json!({"exp": NOW as f64 + 0.5}), 30_500, expired.clone(), "the same, over"),
            (json!({"exp": NOW + 60, "nbf": NOW}), -30_000, Ok(()), "begins within the leeway"),
            (json!({"exp": NOW + 60, "nbf": NOW}), -30_001, early.clone(), "later"),
            (json!({"exp": NOW + 60, "iat": NOW}), -30_000, Ok(()), "issued within the leeway"),
            (json!({"exp": NOW + 60, "iat": NOW}), -30_001, future.clone(), "by a clock that goes faster than that"),
            (json!({"exp": NOW + 60, "iat": NOW}), hour, expired, "our clock is an hour fast: no token is good"),
            (json!({"exp": NOW + 60, "iat": NOW}), -hour, future, "an hour slow: no new token is"),
            (json!({"exp": NOW + 60, "nbf": NOW}), -hour, early, "the same by nbf"),
            (json!({"exp": NOW + 60}), -hour, Ok(()), "jumped back: who says no times is let in"),
            (json!({"exp": NOW + 60}), i64::MIN / 4, Ok(()), "a clock before all times overflows nothing"),
        ];
        for (claims, after_ms, expected, reason) in rows {
            let mut claims = claims;
            claims["sub"] = json!("u");
            assert_eq!(judged(&claims, NOW * 1000 + after_ms), expected, "{reason}: {claims} {after_ms}");
        }
        let for_ever = json!({"sub": "u", "exp": u64::MAX, "nbf": 0, "iat": 0});
        assert_eq!(judged(&for_ever, i64::MAX), Ok(()), "the largest numbers overflow nothing");
    }

    #[test]
    fn no_two_issuers_have_a_tenant_in_common() {
        let named = |name: &str, fixed: Option<&str>| Rules {
            tenants: Tenants::Of { name: name.to_owned(), fixed: fixed.map(str::to_owned) },
            ..rules()
        };
        let issuers = [rules(), named("a", None), named("a-b", None), named("b", Some("x")), named("c", Some(""))];
        let mut seen = std::collections::BTreeSet::new();
        for issuer in &issuers {
            let mut own = std::collections::BTreeSet::new();
            for tenant in [json!(null), json!(""), json!("x"), json!("a"), json!("a-b"), json!("ab"), json!("a\u{1f}x")]
            {
                let claims = json!({"sub": "u", "exp": NOW + 60, "tenant": tenant});
                if let Ok(caller) = issuer.caller(claims.as_object().unwrap(), NOW * 1000, "t") {
                    own.insert(caller.owner.tenant);
                }
            }
            assert!(!own.is_empty());
            assert!(own.iter().all(|tenant| seen.insert(tenant.clone())), "{own:?} of {:?}", issuer.tenants);
        }
    }
}
