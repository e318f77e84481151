//! Values that may be written in two ways: a word or a table, one or a list.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::{AddressFile, AddressWord, Bytes, CostFile, LimitFile, OneOrMany, PartFile};

/// Reads a value that may be written in two ways. Serde's own untagged enums lose the place in the file.
struct EitherWay<T>(PhantomData<T>);

/// What a value may be made of.
trait FromEither<'de>: Sized {
    const EXPECTED: &'static str;
    fn from_text(text: &str) -> Option<Self> {
        let _ = text;
        None
    }
    fn from_number(number: i64) -> Option<Self> {
        let _ = number;
        None
    }
    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        drop(map);
        Err(serde::de::Error::custom(format_args!("expected {}", Self::EXPECTED)))
    }
    fn from_seq<A: SeqAccess<'de>>(seq: A) -> Result<Self, A::Error> {
        drop(seq);
        Err(serde::de::Error::custom(format_args!("expected {}", Self::EXPECTED)))
    }
}

impl<'de, T: FromEither<'de>> Visitor<'de> for EitherWay<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).ok_or_else(|| E::invalid_type(serde::de::Unexpected::Str(text), &self))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<T, E> {
        T::from_number(number)
            .ok_or_else(|| E::invalid_type(serde::de::Unexpected::Signed(number), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::from_map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<T, A::Error> {
        T::from_seq(seq)
    }
}

macro_rules! either_way {
    ($name:ident, $expected:literal, { $($body:tt)* }) => {
        impl<'de> FromEither<'de> for $name {
            const EXPECTED: &'static str = $expected;
            $($body)*
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(EitherWay(PhantomData))
            }
        }
    };
}

either_way!(Bytes, "a number of bytes or a text like `512MiB`", {
    fn from_text(text: &str) -> Option<Self> {
        Some(Self::Text(text.into()))
    }
    fn from_number(number: i64) -> Option<Self> {
        Some(Self::Number(number))
    }
});
either_way!(
    AddressFile,
    "`peer`, `x-forwarded-for`, `forwarded`, `x-real-ip`, `proxy-protocol` or a table like `{ header = \"cf-connecting-ip\" }`",
    {
        fn from_text(text: &str) -> Option<Self> {
            let word = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(text);
            AddressWord::deserialize(word).ok().map(Self::Word)
        }
        fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
            Deserialize::deserialize(MapAccessDeserializer::new(map)).map(Self::Header)
        }
    }
);
either_way!(OneOrMany, "a text or a list of texts", {
    fn from_text(text: &str) -> Option<Self> {
        Some(Self::One(text.into()))
    }
    fn from_seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Self, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = seq.next_element()? {
            texts.push(text);
        }
        Ok(Self::Many(texts))
    }
});
either_way!(
    PartFile,
    "`ip`, `path-pattern`, `principal` or a table like `{ header = \"x-api-key\" }`",
    {
        fn from_text(text: &str) -> Option<Self> {
            Some(Self::Word(text.into()))
        }
        fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
            Deserialize::deserialize(MapAccessDeserializer::new(map))
                .map(|table| Self::Table(Box::new(table)))
        }
    }
);
either_way!(LimitFile, "a limit like `60/min`, or a table with `id` and `rate`", {
    fn from_text(text: &str) -> Option<Self> {
        Some(Self::Text(text.into()))
    }
    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(map)).map(Self::Table)
    }
});
either_way!(CostFile, "a whole number, or a table with `header` and `max`", {
    fn from_number(number: i64) -> Option<Self> {
        Some(Self::Number(number))
    }
    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(map)).map(Self::Table)
    }
});
