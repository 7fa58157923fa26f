//! Parts of messages as bytes: updates as runs of neighbouring words, pages, and bytes that are lent.

/// Updates as runs.
pub(crate) mod updates {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::address::{Address, PageId};
    use crate::update::Update;

    /// Words side by side, written at one time; their values in 4 bytes each.
    #[derive(Serialize, Deserialize)]
    struct Run<'a> {
        page: PageId,
        word: u32,
        time: u64,
        #[serde(borrow, with = "super::bytes")]
        values: std::borrow::Cow<'a, [u8]>,
    }

    fn continues(one: &Update, next: &Update) -> bool {
        let (at, then) = (one.address, next.address);
        at.page == then.page && at.word.checked_add(1) == Some(then.word) && one.time == next.time
    }

    pub(crate) fn serialize<S: Serializer>(
        updates: &[Update],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let runs = updates.chunk_by(continues).map(|run| {
            let values: Vec<u8> =
                run.iter().flat_map(|update| update.value.to_le_bytes()).collect();
            let Address { page, word } = run[0].address;
            Run { page, word, time: run[0].time, values: values.into() }
        });
        runs.collect::<Vec<_>>().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Update>, D::Error> {
        let runs = Vec::<Run<'de>>::deserialize(deserializer)?;
        let mut updates = Vec::new();
        for Run { page, word, time, values } in runs {
            for (place, value) in values.chunks(4).enumerate() {
                let value = value.try_into().map_err(|_| D::Error::custom("words of 4 bytes"))?;
                let word = word.checked_add(place as u32);
                let word = word.ok_or_else(|| D::Error::custom("a word behind all pages"))?;
                let address = Address { page, word };
                updates.push(Update { address, time, value: u32::from_le_bytes(value) });
            }
        }
        Ok(updates)
    }
}

/// A page's words in 4 bytes each; nothing where all are zero.
pub(crate) mod contents {
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
}

/// Bytes that are lent, not copied.
mod bytes {
    use core::fmt;
    use std::borrow::Cow;

    use serde::de::Visitor;
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Cow<'de, [u8]>, D::Error> {
        struct Lent;
        impl<'de> Visitor<'de> for Lent {
            type Value = Cow<'de, [u8]>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(bytes))
            }
        }
        deserializer.deserialize_bytes(Lent)
    }
}
