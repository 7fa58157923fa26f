//! Typed interfaces: a trait is the protocol, and [`interface`](macro@crate::interface) generates
//! both sides.
//!
//! ```
//! use std::sync::Arc;
//! use kyocho_gate::{Client, ROOT, Server, interface};
//!
//! #[interface]
//! trait Arithmetic {
//!     fn sum(&self, numbers: Vec<i64>) -> i64;
//!     fn quotient(&self, a: i64, b: i64) -> Option<i64>;
//! }
//!
//! struct Exact;
//!
//! impl Arithmetic for Exact {
//!     fn sum(&self, numbers: Vec<i64>) -> i64 {
//!         numbers.iter().sum()
//!     }
//!     fn quotient(&self, a: i64, b: i64) -> Option<i64> {
//!         a.checked_div(b)
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let path = std::env::temp_dir().join(format!("kyocho-gate-typed-{}", std::process::id()));
//! kyocho_microprocess::run(|| -> Result<(), kyocho_gate::Error> {
//!     let _server = Server::builder().bind(&path, Arc::new(ArithmeticService(Exact)))?;
//!     let there = ArithmeticClient::new(Client::connect(&path)?.target(ROOT));
//!     assert_eq!(there.sum(vec![1, 2, 3])?, 6);
//!     assert_eq!(there.quotient(1, 0)?, None);
//!     Ok(())
//! })??;
//! # Ok(()) }
//! ```
//!
//! Arguments and results are encoded as [postcard](https://docs.rs/postcard) in the frame, at most
//! [`INLINE_BYTES_MAX`] bytes. A private copy is decoded. Bytes left over after decoding are an
//! error.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Target;
use crate::error::{Error, Failure};
use crate::frame::INLINE_BYTES_MAX;

/// Encodes `value`.
///
/// # Errors
/// [`Failure::ReplyTooLong`]: the encoding is longer than a frame. [`Failure::BadArguments`]: the
/// value cannot be serialised.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Failure> {
    let bytes = postcard::to_stdvec(value).map_err(|_| Failure::BadArguments)?;
    if bytes.len() > INLINE_BYTES_MAX { Err(Failure::ReplyTooLong) } else { Ok(bytes) }
}

/// Decodes a value from all of `bytes`.
///
/// # Errors
/// [`Failure::BadArguments`]: the bytes are not the encoding of one value.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) | Err(_) => Err(Failure::BadArguments),
    }
}

/// Calls `method` of `target` with encoded arguments, and decodes the reply. Blocks as
/// [`Target::call`] does.
///
/// # Errors
/// As for [`Target::call`]; [`Error::Protocol`]: the reply cannot be decoded as `R`.
///
/// # Panics
/// The caller is not a microprocess.
pub fn call<A: Serialize, R: DeserializeOwned>(
    target: &Target,
    method: u32,
    arguments: &A,
) -> Result<R, Error> {
    let request = postcard::to_stdvec(arguments);
    let request = request.map_err(|_| Error::Failed(Failure::BadArguments))?;
    let reply = target.call(method, &request)?;
    decode(&reply).map_err(|_| Error::Protocol)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};
    use crate::error::Failure;
    use crate::frame::INLINE_BYTES_MAX;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decoding_an_encoded_value_returns_it_and_longer_bytes_are_refused(
            value: (u64, String, Option<bool>, Vec<i32>),
            noise in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let bytes = encode(&value).unwrap();
            prop_assert_eq!(decode(&bytes), Ok(value));
            let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
            prop_assert_eq!(decode::<(u64, String, Option<bool>, Vec<i32>)>(&longer), Err(Failure::BadArguments));
            // Decoding any bytes neither panics nor allocates more than their length.
            let _any = decode::<(u64, String, Option<bool>, Vec<i32>)>(&noise);
        }
    }

    #[test]
    fn encoding_a_value_longer_than_a_frame_fails() {
        assert_eq!(encode(&vec![7_u8; INLINE_BYTES_MAX]), Err(Failure::ReplyTooLong));
    }
}
