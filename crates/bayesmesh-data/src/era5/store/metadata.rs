//! The arrays of a store and what is said of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use zarrs::array::ArrayMetadata;
use zarrs::storage::{ReadableStorage, ReadableStorageTraits as _, StoreKey};

use super::location::Place;
use crate::era5::error::Era5Error;

/// What the numbers of an array are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    Bool,
}

impl Kind {
    /// Of a name of version 2 (`<f4`) or 3 (`float32`).
    fn of(name: &str) -> Option<Self> {
        Some(match name.trim_start_matches(['<', '>', '|']) {
            "f4" | "float32" => Self::F32,
            "f8" | "float64" => Self::F64,
            "i1" | "int8" => Self::I8,
            "i2" | "int16" => Self::I16,
            "i4" | "int32" => Self::I32,
            "i8" | "int64" => Self::I64,
            "u1" | "uint8" => Self::U8,
            "u2" | "uint16" => Self::U16,
            "u4" | "uint32" => Self::U32,
            "b1" | "bool" => Self::Bool,
            _ => return None,
        })
    }
}

/// The metadata of an array.
#[derive(Clone, Debug)]
pub(super) struct ArrayInfo {
    pub dimensions: Vec<String>,
    pub shape: Vec<u64>,
    /// `None`: of another kind than numbers.
    pub kind: Option<Kind>,
    pub attributes: Map<String, Value>,
    pub metadata: ArrayMetadata,
}

/// All that the metadata of a store say.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub arrays: BTreeMap<String, ArrayInfo>,
    pub attributes: Map<String, Value>,
}

/// Reads the metadata of a store of version 2 or 3, consolidated or not.
pub(super) fn read(
    store: &str,
    place: Option<&Place>,
    storage: &ReadableStorage,
) -> Result<Contents, Era5Error> {
    let reader = Reader { store, storage };
    if let Some(all) = reader.json(".zmetadata")? {
        return reader.consolidated_2(&all);
    }
    if let Some(group) = reader.json("zarr.json")? {
        return reader.version_3(&group, place);
    }
    if reader.json(".zgroup")?.is_some() {
        return reader.listed_2(place);
    }
    let problem = "neither `.zmetadata` nor `.zgroup` nor `zarr.json`".to_owned();
    Err(Era5Error::NoStore { store: store.to_owned(), problem })
}

struct Reader<'a> {
    store: &'a str,
    storage: &'a ReadableStorage,
}

impl Reader<'_> {
    fn error(&self, array: &str, problem: impl Into<String>) -> Era5Error {
        let (store, array) = (self.store.to_owned(), array.to_owned());
        Era5Error::Metadata { store, array, problem: problem.into() }
    }

    /// A file of metadata, if there is one.
    fn json(&self, key: &str) -> Result<Option<Value>, Era5Error> {
        let name = StoreKey::new(key).map_err(|error| self.error(key, error.to_string()))?;
        let bytes = self.storage.get(&name).map_err(|error| Era5Error::Unreachable {
            store: self.store.to_owned(),
            key: format!("`{key}`"),
            problem: error.to_string(),
            remedy: "Check the address, the network and the permissions",
        })?;
        let parse = |bytes: &[u8]| match serde_json::from_slice(bytes) {
            Ok(value) => Ok(value),
            // Python writes NaN, which JSON does not have.
            Err(error) => serde_json::from_str(&quoted_nan(&String::from_utf8_lossy(bytes)))
                .map_err(|_| self.error(key, format!("is no JSON: {error}"))),
        };
        bytes.map(|bytes| parse(&bytes)).transpose()
    }

    fn consolidated_2(&self, all: &Value) -> Result<Contents, Era5Error> {
        let Some(all) = all.get("metadata").and_then(Value::as_object) else {
            return Err(self.error(".zmetadata", "has no `metadata`; consolidate the store again"));
        };
        let mut contents =
            Contents { attributes: object(all.get(".zattrs")), ..Contents::default() };
        for (key, zarray) in all {
            let Some(name) = key.strip_suffix("/.zarray") else { continue };
            let attributes = object(all.get(&format!("{name}/.zattrs")));
            contents.arrays.insert(name.to_owned(), self.version_2(name, zarray, attributes)?);
        }
        Ok(contents)
    }

    fn listed_2(&self, place: Option<&Place>) -> Result<Contents, Era5Error> {
        let attributes = object(self.json(".zattrs")?.as_ref());
        let mut contents = Contents { attributes, ..Contents::default() };
        for name in self.folders(place)? {
            let Some(zarray) = self.json(&format!("{name}/.zarray"))? else { continue };
            let attributes = object(self.json(&format!("{name}/.zattrs"))?.as_ref());
            let info = self.version_2(&name, &zarray, attributes)?;
            contents.arrays.insert(name, info);
        }
        Ok(contents)
    }

    fn version_3(&self, group: &Value, place: Option<&Place>) -> Result<Contents, Era5Error> {
        if group.get("node_type").and_then(Value::as_str) != Some("group") {
            let problem = "is that of a single array; name the folder that it is in";
            return Err(self.error("zarr.json", problem));
        }
        let attributes = object(group.get("attributes"));
        let mut contents = Contents { attributes, ..Contents::default() };
        let consolidated = group.get("consolidated_metadata").and_then(|all| all.get("metadata"));
        let mut add = |name: &str, node: &Value| -> Result<(), Era5Error> {
            if node.get("node_type").and_then(Value::as_str) == Some("array") {
                let info = self.of_version_3(name, node)?;
                contents.arrays.insert(name.to_owned(), info);
            }
            Ok(())
        };
        if let Some(all) = consolidated.and_then(Value::as_object) {
            for (name, node) in all {
                add(name, node)?;
            }
            return Ok(contents);
        }
        for name in self.folders(place)? {
            if let Some(node) = self.json(&format!("{name}/zarr.json"))? {
                add(&name, &node)?;
            }
        }
        Ok(contents)
    }

    fn folders(&self, place: Option<&Place>) -> Result<Vec<String>, Era5Error> {
        place.and_then(Place::folders).ok_or_else(|| {
            self.error(
                "the store",
                "is not consolidated, and an address cannot be listed. Consolidate it, for example \
                 with Python's `zarr.consolidate_metadata`, or copy the store to a folder",
            )
        })
    }

    fn version_2(
        &self,
        name: &str,
        zarray: &Value,
        attributes: Map<String, Value>,
    ) -> Result<ArrayInfo, Era5Error> {
        let names = attributes.get("_ARRAY_DIMENSIONS").and_then(Value::as_array);
        let kind = zarray.get("dtype").and_then(Value::as_str).and_then(Kind::of);
        let metadata = serde_json::from_value(zarray.clone()).map(ArrayMetadata::V2);
        self.info(name, zarray, names.cloned(), kind, attributes, metadata)
    }

    fn of_version_3(&self, name: &str, node: &Value) -> Result<ArrayInfo, Era5Error> {
        let attributes = object(node.get("attributes"));
        let names = node.get("dimension_names").and_then(Value::as_array);
        let names = names.or_else(|| attributes.get("_ARRAY_DIMENSIONS")?.as_array());
        let kind = node.get("data_type").and_then(Value::as_str).and_then(Kind::of);
        let metadata = serde_json::from_value(node.clone()).map(ArrayMetadata::V3);
        self.info(name, node, names.cloned(), kind, attributes, metadata)
    }

    fn info(
        &self,
        name: &str,
        node: &Value,
        dimensions: Option<Vec<Value>>,
        kind: Option<Kind>,
        attributes: Map<String, Value>,
        metadata: serde_json::Result<ArrayMetadata>,
    ) -> Result<ArrayInfo, Era5Error> {
        let metadata = metadata.map_err(|error| {
            self.error(name, format!("cannot be understood: {error}. Is it a Zarr array?"))
        })?;
        let shape = node.get("shape").and_then(Value::as_array);
        let shape: Option<Vec<u64>> =
            shape.and_then(|shape| shape.iter().map(Value::as_u64).collect());
        let shape = shape.ok_or_else(|| self.error(name, "have no shape; write it again"))?;
        let dimensions = dimensions.unwrap_or_default();
        let name_of = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let dimensions = dimensions.iter().map(name_of).collect();
        Ok(ArrayInfo { dimensions, shape, kind, attributes, metadata })
    }
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

/// JSON with the bare words NaN and Infinity, as Python writes them, put in quotes.
fn quoted_nan(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut rest, mut inside) = (text, false);
    while let Some(first) = rest.chars().next() {
        let word = ["NaN", "-Infinity", "Infinity"].into_iter().find(|word| rest.starts_with(word));
        if let Some(word) = word.filter(|_| !inside) {
            out.push_str(&format!("\"{word}\""));
            rest = &rest[word.len()..];
            continue;
        }
        let mut length = first.len_utf8();
        match first {
            '"' => inside = !inside,
            // What is escaped cannot end a text.
            '\\' => length += rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => {}
        }
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pythons_nan_becomes_a_text() {
        let text = r#"{"a": NaN, "NaN": [-Infinity, Infinity], "b": "is \" NaN", "ä": 1}"#;
        let value: Value = serde_json::from_str(&quoted_nan(text)).unwrap();
        assert_eq!(value["a"], "NaN");
        assert_eq!(value["NaN"][0], "-Infinity");
        assert_eq!(value["b"], "is \" NaN");
    }
}
