//! Derives the schema of a type that recipes configure, from its fields, their documentation and
//! the names that serde gives them. `bayesmesh-schema` has the traits and an example.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Data, DeriveInput, Expr, ExprLit, Field, Fields, Lit, LitStr, Result, Token,
    parenthesized, parse_macro_input,
};

/// The keys of a struct.
///
/// Of a field: `#[key(default = 16)]`, a value; `unset = "…"`, what it means that it is not there,
/// for an `Option`; `required = "…"`, an example; `derived(function, "…")`, what follows from the
/// keys before it, and an explanation. Limits of its numbers, also those in lists: `at_least`,
/// `above`, `at_most`, `below`; of a list, `items = 1` at least. `also("lr", "eta")` are other
/// words for it. What serde skips is no key; what serde flattens brings its own.
///
/// The meaning of a key is the first paragraph of its documentation.
#[proc_macro_derive(Keys, attributes(key, section))]
pub fn keys(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    keys_of_struct(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// The kinds of an enum with `#[serde(tag = "kind")]`, each with the keys of its variant.
///
/// Of the enum: `#[section(default = "adam", example = "kind = \"adam\"")]`. The fields of variants
/// are as those of `Keys`.
#[proc_macro_derive(Kinds, attributes(key, section))]
pub fn kinds(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    kinds_of_enum(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// The texts that stand for the variants of an enum without fields.
#[proc_macro_derive(Choice)]
pub fn choice(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    names_of_enum(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

fn keys_of_struct(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(input, "only structs have keys; enums have kinds"));
    };
    if !matches!(Renaming::of(&input.attrs)?, Renaming::Not) {
        let message = "keys are called like fields; rename single ones instead";
        return Err(syn::Error::new_spanned(input, message));
    }
    let (name, meaning) = (&input.ident, meaning(&input.attrs));
    let (generics, types, bounds) = input.generics.split_for_impl();
    let keys = keys_of_fields(&data.fields)?;
    Ok(quote! {
        impl #generics ::bayesmesh_schema::Keys for #name #types #bounds {
            fn meaning() -> &'static str {
                #meaning
            }

            fn keys() -> ::std::vec::Vec<::bayesmesh_schema::Key> {
                #keys
            }
        }
    })
}

fn kinds_of_enum(input: &DeriveInput) -> Result<TokenStream> {
    let variants = variants(input)?;
    let (name, meaning_of_all) = (&input.ident, meaning(&input.attrs));
    let renaming = Renaming::of(&input.attrs)?;
    let (mut default, mut example) = (quote!(None), LitStr::new("", name.span()));
    each_meta(&input.attrs, "section", |meta| {
        let text: LitStr = meta.value()?.parse()?;
        match () {
            () if meta.path.is_ident("default") => default = quote!(Some(#text)),
            () if meta.path.is_ident("example") => example = text,
            () => return Err(meta.error("a section has `default` and `example`")),
        }
        Ok(())
    })?;
    let mut kinds = Vec::new();
    for variant in variants {
        let kind = renaming.apply(&variant.ident.to_string(), &variant.attrs)?;
        let meaning = meaning(&variant.attrs);
        let keys = keys_of_fields(&variant.fields)?;
        kinds.push(quote! { ::bayesmesh_schema::Kind::new(#kind, #meaning, #keys) });
    }
    Ok(quote! {
        impl ::bayesmesh_schema::Kinds for #name {
            fn section() -> ::bayesmesh_schema::Section {
                ::bayesmesh_schema::Section::of_kinds(
                    #meaning_of_all, ::std::vec![#(#kinds),*], #default, #example,
                )
            }
        }

        impl ::bayesmesh_schema::Value for #name {
            fn values() -> ::bayesmesh_schema::Values {
                ::bayesmesh_schema::Values::section(<Self as ::bayesmesh_schema::Kinds>::section())
            }
        }
    })
}

fn names_of_enum(input: &DeriveInput) -> Result<TokenStream> {
    let (name, renaming) = (&input.ident, Renaming::of(&input.attrs)?);
    let names: Vec<String> = variants(input)?
        .map(|variant| renaming.apply(&variant.ident.to_string(), &variant.attrs))
        .collect::<Result<_>>()?;
    Ok(quote! {
        impl ::bayesmesh_schema::Value for #name {
            fn values() -> ::bayesmesh_schema::Values {
                ::bayesmesh_schema::Values::Choice(&[#(#names),*])
            }
        }
    })
}

fn variants(input: &DeriveInput) -> Result<impl Iterator<Item = &syn::Variant>> {
    match &input.data {
        Data::Enum(data) => Ok(data.variants.iter()),
        _ => Err(syn::Error::new_spanned(input, "only enums have kinds and choices")),
    }
}

/// An expression for the keys of some fields, in their order.
fn keys_of_fields(fields: &Fields) -> Result<TokenStream> {
    if let Fields::Unnamed(fields) = fields {
        let Some((inner, None)) = fields.unnamed.first().map(|f| (&f.ty, fields.unnamed.get(1)))
        else {
            return Err(syn::Error::new_spanned(fields, "a variant has named fields or one type"));
        };
        return Ok(quote! { <#inner as ::bayesmesh_schema::Keys>::keys() });
    }
    let mut steps = Vec::new();
    for field in fields {
        steps.push(keys_of_field(field)?);
    }
    Ok(quote! {{
        #[allow(unused_mut)]
        let mut keys = ::std::vec::Vec::<::bayesmesh_schema::Key>::new();
        #(#steps)*
        keys
    }})
}

/// A statement that adds the keys of a field to `keys`.
fn keys_of_field(field: &Field) -> Result<TokenStream> {
    let serde = Serde::of(&field.attrs)?;
    let kind = &field.ty;
    if serde.skip {
        return Ok(quote!());
    }
    if serde.flatten {
        return Ok(quote! { keys.extend(<#kind as ::bayesmesh_schema::Keys>::keys()); });
    }
    let ident = field.ident.as_ref().expect("named fields have names");
    let name = Renaming::Not.apply(&ident.to_string(), &field.attrs)?;
    let meaning = meaning(&field.attrs);
    let mut absent = None;
    let (mut limits, mut also, mut values) = (Vec::new(), Vec::new(), None);
    each_meta(&field.attrs, "key", |meta| {
        let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        match word.as_str() {
            "default" => {
                let text = toml(&meta.value()?.parse()?)?;
                absent = Some(quote! { ::bayesmesh_schema::Absent::Value(#text) });
            }
            "unset" => {
                let text: LitStr = meta.value()?.parse()?;
                absent = Some(quote! { ::bayesmesh_schema::Absent::Unset(#text) });
            }
            "required" => {
                let text: LitStr = meta.value()?.parse()?;
                absent = Some(quote! { ::bayesmesh_schema::Absent::Refused(#text) });
            }
            "derived" => {
                let content;
                parenthesized!(content in meta.input);
                let function: Expr = content.parse()?;
                content.parse::<Token![,]>()?;
                let explanation: LitStr = content.parse()?;
                absent = Some(quote! {
                    ::bayesmesh_schema::Absent::Derived(#function, #explanation)
                });
            }
            "also" => {
                let content;
                parenthesized!(content in meta.input);
                also = list::<LitStr>(&content)?;
            }
            "values" => values = Some(meta.value()?.parse::<Expr>()?),
            "at_least" | "above" | "at_most" | "below" => {
                let (limit, number) = (&meta.path, meta.value()?.parse::<Expr>()?);
                limits.push(quote! { .#limit((#number) as f64) });
            }
            "items" => {
                let least: Expr = meta.value()?.parse()?;
                limits.push(quote! { .items(#least) });
            }
            _ => return Err(meta.error("no such property of a key")),
        }
        Ok(())
    })?;
    let values = match values {
        Some(values) => quote! { #values },
        None => quote! { <#kind as ::bayesmesh_schema::Value>::values() },
    };
    let Some(absent) = absent else {
        // A section within a section, which has defaults of its own.
        let section = quote! { <#kind as ::bayesmesh_schema::Kinds>::section() };
        return Ok(quote! { keys.push(::bayesmesh_schema::Key::section(#name, #section)); });
    };
    Ok(quote! {
        keys.push(
            ::bayesmesh_schema::Key::new(#name, #values #(#limits)*, #absent, #meaning)
                .also(&[#(#also),*]),
        );
    })
}

/// What serde does with a field.
#[derive(Default)]
struct Serde {
    skip: bool,
    flatten: bool,
}

impl Serde {
    fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut serde = Self::default();
        each_meta(attributes, "serde", |meta| {
            serde.skip |= meta.path.is_ident("skip");
            serde.flatten |= meta.path.is_ident("flatten");
            pass_over(&meta)
        })?;
        Ok(serde)
    }
}

/// How serde names variants.
#[derive(Clone, Copy)]
enum Renaming {
    Not,
    Kebab,
    Lower,
}

impl Renaming {
    fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut renaming = Self::Not;
        each_meta(attributes, "serde", |meta| {
            if !meta.path.is_ident("rename_all") {
                return pass_over(&meta);
            }
            let text: LitStr = meta.value()?.parse()?;
            renaming = match text.value().as_str() {
                "kebab-case" => Self::Kebab,
                "lowercase" => Self::Lower,
                _ => return Err(meta.error("only kebab-case and lowercase are known here")),
            };
            Ok(())
        })?;
        Ok(renaming)
    }

    /// The name of a field or a variant, which may have one of its own.
    fn apply(self, ident: &str, attributes: &[Attribute]) -> Result<String> {
        let mut own = None;
        each_meta(attributes, "serde", |meta| {
            if !meta.path.is_ident("rename") {
                return pass_over(&meta);
            }
            own = Some(meta.value()?.parse::<LitStr>()?.value());
            Ok(())
        })?;
        Ok(own.unwrap_or_else(|| match self {
            Self::Not => ident.to_owned(),
            Self::Lower => ident.to_lowercase(),
            Self::Kebab => {
                let mut name = String::new();
                for c in ident.chars() {
                    if c.is_uppercase() && !name.is_empty() {
                        name.push('-');
                    }
                    name.extend(c.to_lowercase());
                }
                name
            }
        }))
    }
}

/// Calls `each` with every word of the attributes of a name.
fn each_meta(
    attributes: &[Attribute],
    name: &str,
    mut each: impl FnMut(ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(name)) {
        attribute.parse_nested_meta(&mut each)?;
    }
    Ok(())
}

/// Reads the value of a word that does not matter here.
fn pass_over(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<Expr>()?;
    }
    Ok(())
}

fn list<T: Parse>(content: syn::parse::ParseStream<'_>) -> Result<Vec<T>> {
    Ok(Punctuated::<T, Token![,]>::parse_terminated(content)?.into_iter().collect())
}

/// A literal, or a list of them, as TOML writes it.
fn toml(value: &Expr) -> Result<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(format!("{:?}", text.value())),
        Expr::Lit(ExprLit { lit, .. }) => Ok(quote!(#lit).to_string()),
        Expr::Array(array) => {
            let items: Vec<String> = array.elems.iter().map(toml).collect::<Result<_>>()?;
            Ok(format!("[{}]", items.join(", ")))
        }
        other => Err(syn::Error::new_spanned(other, "a default is a literal or a list of them")),
    }
}

/// The first paragraph of a documentation.
fn meaning(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        let Ok(named) = attribute.meta.require_name_value() else { continue };
        let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &named.value else { continue };
        lines.push(text.value().trim().to_owned());
    }
    let paragraph: Vec<String> = lines.into_iter().take_while(|line| !line.is_empty()).collect();
    paragraph.join(" ")
}
