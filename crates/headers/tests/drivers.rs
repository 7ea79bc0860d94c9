//! Check of the drivers: the declarations of CUDA and HIP in crates/gpu/src match the vendors'
//! headers, as bindgen reads them: parameters (number and kind of each), structs, values.

mod support;

use std::collections::HashMap;
use std::path::PathBuf;

use headers::root;
use support::{fetch, prepare_libclang, run, tool};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Expr, FnArg, Ident, Item, LitStr, Token, Type, parenthesized};

/// The machine type of a parameter. The vendors declare device addresses as numbers.
#[derive(Clone, PartialEq, Debug)]
enum Kind {
    /// 8 bytes: a number, an address or a handle; and the type it points to, if known.
    Word(Option<Box<Kind>>),
    /// A number of so many bytes.
    Number(usize),
    /// A struct's fields.
    Fields(Vec<Kind>),
}

impl Kind {
    /// Whether our declaration is compatible with the vendor's.
    fn agrees(&self, vendors: &Kind) -> bool {
        match (self, vendors) {
            (Kind::Word(Some(ours)), Kind::Word(Some(theirs))) => ours.agrees(theirs),
            (Kind::Word(_), Kind::Word(_)) => true,
            // Ours may have extra space at the end, for later versions.
            (Kind::Fields(ours), Kind::Fields(theirs)) => {
                ours.len() >= theirs.len() && ours.iter().zip(theirs).all(|(a, b)| a.agrees(b))
            }
            (ours, theirs) => ours == theirs,
        }
    }
}

/// The types, functions and constants of a file.
#[derive(Default)]
struct Names {
    types: HashMap<String, Type>,
    structs: HashMap<String, Vec<Type>>,
    functions: HashMap<String, Vec<Type>>,
    constants: HashMap<String, i64>,
}

impl Names {
    fn add(&mut self, file: syn::File) {
        for item in file.items {
            match item {
                Item::Type(it) => drop(self.types.insert(it.ident.to_string(), *it.ty)),
                Item::Struct(it) => {
                    let fields = it.fields.into_iter().map(|field| field.ty).collect();
                    self.structs.insert(it.ident.to_string(), fields);
                }
                Item::Const(it) => {
                    if let Some(value) = number(&it.expr) {
                        self.constants.insert(it.ident.to_string(), value);
                    }
                }
                Item::ForeignMod(it) => it.items.into_iter().for_each(|item| {
                    if let syn::ForeignItem::Fn(it) = item {
                        let types = it.sig.inputs.into_iter().filter_map(|input| match input {
                            FnArg::Typed(it) => Some(*it.ty),
                            FnArg::Receiver(_) => None,
                        });
                        self.functions.insert(it.sig.ident.to_string(), types.collect());
                    }
                }),
                // Two names for one field, since HIP 5.7.
                Item::Union(it) => {
                    let field = it.fields.named.into_iter().next().unwrap();
                    self.types.insert(it.ident.to_string(), field.ty);
                }
                // `pub use self::name_enum as name;`
                Item::Use(it) => {
                    if let syn::UseTree::Path(path) = it.tree
                        && let syn::UseTree::Rename(it) = *path.tree
                    {
                        let old = it.ident;
                        self.types.insert(it.rename.to_string(), syn::parse_quote!(#old));
                    }
                }
                _ => {}
            }
        }
    }

    fn kind(&self, ty: &Type) -> Kind {
        match ty {
            Type::Ptr(pointer) => Kind::Word(self.pointee(&pointer.elem)),
            Type::Array(_) => Kind::Fields(Vec::new()),
            Type::Path(path) => {
                let name = path.path.segments.last().unwrap().ident.to_string();
                match name.as_str() {
                    "c_ulonglong" | "c_longlong" | "c_ulong" | "c_long" | "usize" | "u64"
                    | "i64" => Kind::Word(None),
                    "c_int" | "c_uint" | "i32" | "u32" => Kind::Number(4),
                    "c_char" | "c_uchar" | "u8" | "bool" => Kind::Number(1),
                    "Option" => Kind::Word(None),          // a callback
                    "Storage" => Kind::Fields(Vec::new()), // bit fields, by bindgen
                    _ => match (self.types.get(&name), self.structs.get(&name)) {
                        (Some(ty), _) => self.kind(ty),
                        (_, Some(fields)) => {
                            Kind::Fields(fields.iter().map(|field| self.kind(field)).collect())
                        }
                        _ => panic!("{name} is not known"),
                    },
                }
            }
            _ => panic!("a type of a kind that no driver uses"),
        }
    }

    /// The type a pointer refers to; none for `void` and handles.
    fn pointee(&self, ty: &Type) -> Option<Box<Kind>> {
        let Type::Path(path) = ty else { return Some(Box::new(self.kind(ty))) };
        let name = path.path.segments.last().unwrap().ident.to_string();
        // A handle's struct has one field of no size.
        let opaque = |fields: &Vec<Type>| fields.iter().all(|ty| matches!(ty, Type::Array(_)));
        if name == "c_void" || self.structs.get(&name).is_some_and(opaque) {
            return None;
        }
        Some(Box::new(self.kind(ty)))
    }
}

fn number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Lit(it) => match &it.lit {
            syn::Lit::Int(int) => int.base10_parse().ok(),
            _ => None,
        },
        Expr::Unary(it) => number(&it.expr).map(|n| -n),
        _ => None,
    }
}

/// A line of `functions!` in driver.rs.
struct Function {
    types: Vec<Type>,
    names: [String; 2],
}

impl Parse for Function {
    fn parse(input: ParseStream) -> syn::Result<Function> {
        input.parse::<Ident>()?;
        let arguments;
        parenthesized!(arguments in input);
        let mut types = Vec::new();
        while !arguments.is_empty() {
            arguments.parse::<Ident>()?;
            arguments.parse::<Token![:]>()?;
            types.push(arguments.parse()?);
            arguments.parse::<Option<Token![,]>>()?;
        }
        input.parse::<Token![=]>()?;
        let cuda: LitStr = input.parse()?;
        input.parse::<Token![,]>()?;
        let hip: LitStr = input.parse()?;
        Ok(Function { types, names: [cuda.value(), hip.value()] })
    }
}

fn functions(driver: &syn::File) -> Vec<Function> {
    let tokens = driver.items.iter().find_map(|item| match item {
        Item::Macro(it) if it.mac.path.is_ident("functions") => Some(it.mac.clone()),
        _ => None,
    });
    let lines = tokens
        .expect("driver.rs has functions!")
        .parse_body_with(Punctuated::<Function, Token![;]>::parse_terminated);
    lines.expect("functions! is read").into_iter().collect()
}

/// The `call!`s of hiprtc.rs: a function's name, then `argument => type` of each parameter.
fn calls(text: &str) -> Vec<Function> {
    let call = |call: &str| {
        let (name, rest) = call.split_once("c\"")?.1.split_once('"')?;
        let rest = rest.split(';').next()?;
        let types = rest.split("=>").skip(1).map(|part| {
            let end = part.find([',', ')']).expect("a type ends");
            syn::parse_str(part[..end].trim()).expect("a type")
        });
        Some(Function { types: types.collect(), names: [String::new(), name.to_owned()] })
    };
    text.split("call!(library").skip(1).filter_map(call).collect()
}

/// bindgen's output for headers.
fn vendor(headers: &[PathBuf], prefix: &str, arguments: &[String]) -> Names {
    let stddef = run(tool("gcc", "gcc").arg("-print-file-name=include"));
    let text = bindgen::Builder::default()
        .headers(headers.iter().map(|header| header.display().to_string()))
        .clang_args(["-idirafter", stddef.trim()])
        .clang_args(arguments)
        .allowlist_item(format!("{prefix}.*"))
        .layout_tests(false)
        .generate_comments(false)
        .formatter(bindgen::Formatter::None)
        .generate()
        .unwrap_or_else(|e| panic!("bindgen: {e}"))
        .to_string();
    let mut names = Names::default();
    names.add(syn::parse_file(&text).expect("bindgen writes Rust"));
    names
}

/// Our constant, its file, and the vendor's constant of the same value.
const VALUES: [(&str, &str, &str); 21] = [
    ("codes.rs", "NOT_READY", "cudaError_enum_CUDA_ERROR_NOT_READY"),
    ("codes.rs", "NOT_READY", "hipError_t_hipErrorNotReady"),
    ("codes.rs", "INVALID_VALUE", "cudaError_enum_CUDA_ERROR_INVALID_VALUE"),
    ("codes.rs", "INVALID_VALUE", "hipError_t_hipErrorInvalidValue"),
    ("context.rs", "RELAXED", "CUstreamCaptureMode_enum_CU_STREAM_CAPTURE_MODE_RELAXED"),
    ("context.rs", "RELAXED", "hipStreamCaptureMode_hipStreamCaptureModeRelaxed"),
    ("context.rs", "NOT_SUPPORTED", "cudaError_enum_CUDA_ERROR_NOT_SUPPORTED"),
    ("context.rs", "NOT_SUPPORTED", "hipError_t_hipErrorNotSupported"),
    ("cuda.rs", "MEMORY_TYPE", "CUpointer_attribute_enum_CU_POINTER_ATTRIBUTE_MEMORY_TYPE"),
    ("cuda.rs", "IS_MANAGED", "CUpointer_attribute_enum_CU_POINTER_ATTRIBUTE_IS_MANAGED"),
    ("cuda.rs", "DEVICE_ORDINAL", "CUpointer_attribute_enum_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL"),
    ("cuda.rs", "MEMPOOL_HANDLE", "CUpointer_attribute_enum_CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE"),
    ("cuda.rs", "MEMORY_HOST", "CUmemorytype_enum_CU_MEMORYTYPE_HOST"),
    ("structs.rs", "MEMORY_UNIFIED", "CUmemorytype_enum_CU_MEMORYTYPE_UNIFIED"),
    ("memory.rs", "PORTABLE", "CU_MEMHOSTALLOC_PORTABLE"),
    ("memory.rs", "PORTABLE", "hipHostMallocPortable"),
    ("memory.rs", "GLOBAL", "CUmemAttach_flags_enum_CU_MEM_ATTACH_GLOBAL"),
    ("backend.rs", "NONBLOCKING", "hipStreamNonBlocking"),
    ("backend.rs", "NONBLOCKING", "CUstream_flags_enum_CU_STREAM_NON_BLOCKING"),
    ("vendor.rs", "DISABLE_TIMING", "CUevent_flags_enum_CU_EVENT_DISABLE_TIMING"),
    ("rocm.rs", "BY_ADDRESS", "hipMemcpyKind_hipMemcpyDefault"),
];

/// Functions that Debian's HIP 5.2 lacks.
const NEWER: [&str; 2] = ["hipStreamGetDevice", "hipGetDevicePropertiesR0600"];

fn text(name: &str) -> String {
    let file = root().join("crates/gpu/src").join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn parsed(name: &str) -> syn::File {
    syn::parse_file(&text(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn declarations_are_the_vendors() {
    prepare_libclang();
    let hip = fetch("hip");
    let flags = [format!("-I{}", hip.display()), "-D__HIP_PLATFORM_AMD__".into()];
    let cuda = vendor(&[fetch("cuda")], "(CU|cu|cuda)", &[]);
    let hip = ["hip/hip_runtime_api.h", "hip/hiprtc.h"].map(|header| hip.join(header));
    let hip = vendor(&hip, "hip", &flags);
    let mut ours = Names::default();
    ["driver.rs", "structs.rs", "cuda.rs", "rocm.rs", "vendor.rs"]
        .iter()
        .for_each(|name| ours.add(parsed(name)));

    let (mut wrong, mut checked) = (Vec::new(), 0);
    let compiler = calls(&text("hiprtc.rs"));
    assert!(compiler.len() >= 5, "hiprtc.rs calls {} functions", compiler.len());
    for Function { types, names } in functions(&parsed("driver.rs")).into_iter().chain(compiler) {
        let mine: Vec<Kind> = types.iter().map(|ty| ours.kind(ty)).collect();
        for (vendor, name) in [&cuda, &hip].into_iter().zip(names) {
            if name.is_empty() || NEWER.contains(&name.as_str()) {
                continue;
            }
            let Some(types) = vendor.functions.get(&name) else {
                wrong.push(format!("{name}: not in the vendor's header"));
                continue;
            };
            let theirs: Vec<Kind> = types.iter().map(|ty| vendor.kind(ty)).collect();
            let agree = mine.len() == theirs.len()
                && mine.iter().zip(&theirs).all(|(mine, theirs)| mine.agrees(theirs));
            if !agree {
                wrong.push(format!("{name}: ours {mine:?}\n  the vendor's {theirs:?}"));
            }
            checked += 1;
        }
    }
    for (file, name, vendors) in VALUES {
        let mut ours = Names::default();
        ours.add(parsed(file));
        let mine = ours.constants.get(name);
        let theirs = cuda.constants.get(vendors).or(hip.constants.get(vendors));
        if mine.is_none() || mine != theirs {
            wrong.push(format!("{file}: {name} is {mine:?}, {vendors} is {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 50, "only {checked} functions");
}
