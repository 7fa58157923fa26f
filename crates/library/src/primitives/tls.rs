//! TLS: sockets with an authenticated server and encrypted content.
//!
//! Certificates and keys are PEM texts, as in `.pem` files. The versions are 1.2 and 1.3.

use super::Primitive;
use super::call::Call;
use super::sockets::{Layer, listen, reach, refused, reserve, store, tcp_addresses};
use crate::port::{Tls, waiting};
use kyocho_heap::heap::Mutator;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use std::io;
use std::sync::{Arc, OnceLock};

pub(super) const TABLE: &[Primitive] = &[
    Primitive::between("tls-connect", 2, 3, connect),
    Primitive::exactly("tls-listen", 4, |m, a| {
        let call = Call::new("tls-listen", a);
        let config = server_config(call, 2, 3)?;
        let addresses = tcp_addresses(m, call)?;
        listen(m, call, &addresses, Layer::TlsListener(config))
    }),
];

/// `(tls-connect host port [certificates])`: connects, and verifies that the other side is `host`.
/// Its certificate must be signed by an authority that this machine trusts, or by one of
/// `certificates`.
fn connect(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("tls-connect", arguments);
    let host = call.string(0)?;
    let name = ServerName::try_from(host.clone()).map_err(|_| {
        Raise::error(format!("tls-connect: {host} is no name of a host"), Vec::new())
    })?;
    let config = client_config(m, call)?;
    let addresses = tcp_addresses(m, call)?;
    let place = reserve(m)?;
    let (socket, address, held) = reach(m, call, &addresses)?;
    let shaken = || {
        let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let tls = Tls::new(socket.try_clone()?, connection.into())?;
        waiting(m, |is_cut| tls.shake_hands(is_cut))?;
        Ok(tls)
    };
    let tls = shaken().map_err(|error| refused(call, &format!("{host} at {address}"), &error))?;
    Ok(store(m, place, socket, address, Layer::Tls(Arc::new(tls)), held))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn client_config(m: &mut Mutator, call: Call<'_>) -> Result<Arc<ClientConfig>> {
    let roots = match call.optional(2) {
        None => waiting(m, |_| trusted())
            .map_err(|why| Raise::error(format!("tls-connect: {why}"), Vec::new()))?,
        Some(_) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(call, 2)? {
                roots.add(certificate).map_err(|error| wrong(call, "certificate", &error))?;
            }
            Arc::new(roots)
        }
    };
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(call, "version", &error))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// The authorities that this machine trusts, loaded once.
fn trusted() -> core::result::Result<Arc<RootCertStore>, String> {
    static TRUSTED: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let roots = TRUSTED.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    });
    if roots.is_empty() {
        let message = "this machine trusts no authority (its package ca-certificates is missing): pass certificates";
        return Err(message.to_owned());
    }
    Ok(Arc::clone(roots))
}

/// The configuration from certificates, the server's own first, and its key.
fn server_config(call: Call<'_>, certificate: usize, key: usize) -> Result<Arc<ServerConfig>> {
    let certificates = certificates(call, certificate)?;
    let key = PrivateKeyDer::from_pem_slice(call.string(key)?.as_bytes())
        .map_err(|error| wrong(call, "key", &error))?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(call, "version", &error))?;
    let config = builder
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| wrong(call, "certificate or key", &error))?;
    Ok(Arc::new(config))
}

/// The certificates in argument `i`, at least one.
fn certificates(call: Call<'_>, i: usize) -> Result<Vec<CertificateDer<'static>>> {
    let text = call.string(i)?;
    let found: core::result::Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let found = found.map_err(|error| wrong(call, "certificate", &error))?;
    if found.is_empty() {
        return Err(wrong(call, "certificate", &"the text has none (PEM is expected)"));
    }
    Ok(found)
}

fn wrong(call: Call<'_>, what: &str, error: &dyn core::fmt::Display) -> Raise {
    Raise::error(format!("{}: {what}: {error}", call.who()), Vec::new())
}
