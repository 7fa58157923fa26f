//! Stubs of typed gates: [`macro@interface`] generates client and server from a trait.
//!
//! The generated code is short: everything that can be a function is one, in `kyocho_gate::typed`.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{
    Error, FnArg, Ident, ItemTrait, Pat, ReturnType, TraitItem, TraitItemFn, Type,
    parse_macro_input,
};

/// Generates client and server of a trait `Name`: `NameClient`, whose methods call through a gate,
/// and `NameService`, which serves such calls with an implementation of the trait.
///
/// Methods take `&self` and values that can be serialised (`serde`), and return such a value. The
/// client's methods return it in a `Result` with `kyocho_gate::Error`. Methods are numbered in
/// their order, so both sides must be built from the same trait.
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

/// The parts of a method that the stubs need.
struct Method<'a> {
    function: &'a TraitItemFn,
    names: Vec<&'a Ident>,
    types: Vec<&'a Type>,
    result: Tokens,
    number: u32,
}

fn write(item: &ItemTrait) -> Result<Tokens, Error> {
    if !item.generics.params.is_empty() {
        return Err(Error::new(item.generics.span(), "an interface cannot have type parameters"));
    }
    let methods: Vec<Method<'_>> =
        item.items.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    let (client, service) = (client(item, &methods), service(item, &methods));
    Ok(quote! { #item #client #service })
}

fn read((number, item): (usize, &TraitItem)) -> Result<Method<'_>, Error> {
    let TraitItem::Fn(function) = item else {
        return Err(Error::new(item.span(), "an interface can only have methods"));
    };
    let signature = &function.sig;
    if !signature.generics.params.is_empty() || signature.asyncness.is_some() {
        return Err(Error::new(signature.span(), "a method cannot be generic or async"));
    }
    let mut inputs = signature.inputs.iter();
    match inputs.next() {
        Some(FnArg::Receiver(own)) if own.reference.is_some() && own.mutability.is_none() => {}
        _ => {
            return Err(Error::new(
                signature.span(),
                "the first parameter of a method must be `&self`",
            ));
        }
    }
    let (mut names, mut types) = (Vec::new(), Vec::new());
    for input in inputs {
        let FnArg::Typed(input) = input else { continue };
        let Pat::Ident(name) = &*input.pat else {
            return Err(Error::new(input.pat.span(), "a parameter must be a name"));
        };
        if matches!(*input.ty, Type::Reference(_)) {
            return Err(Error::new(
                input.ty.span(),
                "a parameter must be a value, not a reference",
            ));
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
    let title = format!("Calls an object with interface [`{}`] in another process.", item.ident);
    let stubs = methods.iter().map(|method| {
        let Method { function, names, types, result, number } = method;
        let (title, stub) = (format!("Calls `{}` in the other process.", function.sig.ident), &function.sig.ident);
        quote! {
            #[doc = #title]
            ///
            /// # Errors
            /// The call failed, or its arguments are longer than a frame.
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
            /// A client that calls `target`, which must be an object with this interface.
            pub fn new(target: ::kyocho_gate::Target) -> Self { Self { target } }

            #(#stubs)*
        }
    }
}

fn service(item: &ItemTrait, methods: &[Method<'_>]) -> Tokens {
    let (visibility, interface) = (&item.vis, &item.ident);
    let name = format_ident!("{}Service", interface);
    let title =
        format!("Serves calls of other processes with an implementation of [`{interface}`].");
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
