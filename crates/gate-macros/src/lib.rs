//! Stubs of typed gates: [`macro@interface`] writes client and server from a trait.
//!
//! What it writes is short and plain; everything that can be a function is one, in `kyocho_gate::typed`.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{
    Error, FnArg, Ident, ItemTrait, Pat, ReturnType, TraitItem, TraitItemFn, Type,
    parse_macro_input,
};

/// Writes, for a trait `Name`, the types `NameClient`, whose methods are calls through a gate, and `NameService`, which serves them by an
/// implementation of the trait.
///
/// Methods take `&self` and values that can be serialised (`serde`), and return such a value. The client's methods return it in a `Result`
/// with `kyocho_gate::Error`. Methods are numbered in their order: both sides must be built from the same trait.
///
/// See `kyocho_gate::typed` for an example.
#[proc_macro_attribute]
pub fn interface(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as ItemTrait);
    let written = if arguments.is_empty() {
        write(&item)
    } else {
        Err(Error::new(Tokens::from(arguments).span(), "`interface` takes no arguments"))
    };
    written.unwrap_or_else(Error::into_compile_error).into()
}

/// One method, as the stubs need it.
struct Method<'a> {
    function: &'a TraitItemFn,
    names: Vec<&'a Ident>,
    types: Vec<&'a Type>,
    result: Tokens,
    number: u32,
}

fn write(item: &ItemTrait) -> Result<Tokens, Error> {
    if !item.generics.params.is_empty() {
        return Err(Error::new(item.generics.span(), "an interface has no type parameters"));
    }
    let methods: Vec<Method<'_>> =
        item.items.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    let (client, service) = (client(item, &methods), service(item, &methods));
    Ok(quote! { #item #client #service })
}

fn read((number, item): (usize, &TraitItem)) -> Result<Method<'_>, Error> {
    let TraitItem::Fn(function) = item else {
        return Err(Error::new(item.span(), "an interface has methods alone"));
    };
    let signature = &function.sig;
    if !signature.generics.params.is_empty() || signature.asyncness.is_some() {
        return Err(Error::new(signature.span(), "a method is neither generic nor async"));
    }
    let mut inputs = signature.inputs.iter();
    match inputs.next() {
        Some(FnArg::Receiver(own)) if own.reference.is_some() && own.mutability.is_none() => {}
        _ => return Err(Error::new(signature.span(), "a method takes `&self` first")),
    }
    let (mut names, mut types) = (Vec::new(), Vec::new());
    for input in inputs {
        let FnArg::Typed(input) = input else { continue };
        let Pat::Ident(name) = &*input.pat else {
            return Err(Error::new(input.pat.span(), "an argument is a name"));
        };
        if matches!(*input.ty, Type::Reference(_)) {
            return Err(Error::new(input.ty.span(), "an argument is a value, not a reference"));
        }
        names.push(&name.ident);
        types.push(&*input.ty);
    }
    let result = match &signature.output {
        ReturnType::Default => quote! { () },
        ReturnType::Type(_, result) => quote! { #result },
    };
    Ok(Method { function, names, types, result, number: number as u32 })
}

fn client(item: &ItemTrait, methods: &[Method<'_>]) -> Tokens {
    let (visibility, name) = (&item.vis, format_ident!("{}Client", item.ident));
    let title = format!("Calls a [`{}`] of another process.", item.ident);
    let stubs = methods.iter().map(|method| {
        let Method { function, names, types, result, number } = method;
        let (title, stub) = (format!("`{}` there.", function.sig.ident), &function.sig.ident);
        quote! {
            #[doc = #title]
            ///
            /// # Errors
            /// The call failed, or its arguments are more than a frame holds.
            pub fn #stub(&self, #(#names: #types),*) -> ::core::result::Result<#result, ::kyocho_gate::Error> {
                ::kyocho_gate::typed::call(&self.target, #number, &(#(#names,)*))
            }
        }
    });
    quote! {
        #[doc = #title]
        #[derive(Debug, Clone)]
        #visibility struct #name { target: ::kyocho_gate::Target }

        impl #name {
            /// By calls to `target`, which is such an object.
            pub fn new(target: ::kyocho_gate::Target) -> Self { Self { target } }

            #(#stubs)*
        }
    }
}

fn service(item: &ItemTrait, methods: &[Method<'_>]) -> Tokens {
    let (visibility, interface) = (&item.vis, &item.ident);
    let name = format_ident!("{}Service", interface);
    let title = format!("Serves a [`{interface}`] to other processes.");
    let arms = methods.iter().map(|method| {
        let Method { function, names, types, number, .. } = method;
        let stub = &function.sig.ident;
        quote! {
            #number => {
                let (#(#names,)*): (#(#types,)*) = ::kyocho_gate::typed::decode(call.bytes())?;
                ::kyocho_gate::typed::encode(&#interface::#stub(&self.0, #(#names),*))
            }
        }
    });
    quote! {
        #[doc = #title]
        #[derive(Debug, Clone)]
        #visibility struct #name<T>(pub T);

        impl<T: #interface + Send + Sync> ::kyocho_gate::Service for #name<T> {
            fn serve(
                &self,
                call: &::kyocho_gate::Call<'_>,
            ) -> ::core::result::Result<::std::vec::Vec<u8>, ::kyocho_gate::Failure> {
                match call.method() {
                    #(#arms)*
                    _ => ::core::result::Result::Err(::kyocho_gate::Failure::NoMethod),
                }
            }
        }
    }
}
