//! The words of a page, 4 bytes each; an empty string if all are zero.

use serde::de::Error;
use serde::{Deserializer, Serializer};

use crate::page::{Contents, WORDS_A_PAGE};

pub(crate) fn serialize<S: Serializer>(
    contents: &Contents,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if contents.iter().all(|word| *word == 0) {
        return serializer.serialize_bytes(&[]);
    }
    if cfg!(target_endian = "little") {
        return serializer.serialize_bytes(bytemuck::cast_slice(contents));
    }
    let bytes: Vec<u8> = contents.iter().flat_map(|word| word.to_le_bytes()).collect();
    serializer.serialize_bytes(&bytes)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Contents, D::Error> {
    let bytes = super::bytes::deserialize(deserializer)?;
    if bytes.is_empty() {
        return Ok(vec![0; WORDS_A_PAGE].into());
    }
    if bytes.len() != WORDS_A_PAGE * 4 {
        return Err(D::Error::custom("a page has 4096 bytes"));
    }
    let words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    Ok(words.collect())
}
