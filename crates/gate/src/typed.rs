//! Typed interfaces: a trait is the protocol, [`interface`](macro@crate::interface) writes both sides.
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
//! Arguments and results travel as [postcard](https://docs.rs/postcard), in the frame: at most [`INLINE_BYTES_MAX`] bytes. What is decoded is
//! the copy that nobody changes any more; bytes that are left over are an error.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Target;
use crate::error::{Error, Failure};
use crate::frame::INLINE_BYTES_MAX;

/// `value` as bytes.
///
/// # Errors
/// [`Failure::ReplyTooLong`]: they do not fit into a frame. [`Failure::BadArguments`]: it cannot be serialised.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Failure> {
    let bytes = postcard::to_stdvec(value).map_err(|_| Failure::BadArguments)?;
    if bytes.len() > INLINE_BYTES_MAX { Err(Failure::ReplyTooLong) } else { Ok(bytes) }
}

/// The value that `bytes` are, all of them.
///
/// # Errors
/// [`Failure::BadArguments`]: they are none.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) | Err(_) => Err(Failure::BadArguments),
    }
}

/// Calls `method` of `target`.
///
/// # Errors
/// As for [`Target::call`]; [`Error::Protocol`]: the reply is no such value.
///
/// # Panics
/// The caller is no microprocess.
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
        fn values_survive_and_other_bytes_are_refused(
            value: (u64, String, Option<bool>, Vec<i32>),
            noise in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let bytes = encode(&value).unwrap();
            prop_assert_eq!(decode(&bytes), Ok(value));
            let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
            prop_assert_eq!(decode::<(u64, String, Option<bool>, Vec<i32>)>(&longer), Err(Failure::BadArguments));
            // Whatever it is, it neither panics nor asks for more memory than there are bytes.
            let _any = decode::<(u64, String, Option<bool>, Vec<i32>)>(&noise);
        }
    }

    #[test]
    fn too_long_is_said() {
        assert_eq!(encode(&vec![7_u8; INLINE_BYTES_MAX]), Err(Failure::ReplyTooLong));
    }
}
