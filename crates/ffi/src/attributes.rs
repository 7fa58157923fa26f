//! Attributes of new microprocesses: `kyocho_attr_*`.
#![expect(unsafe_code, reason = "the boundary to C")]

use core::ffi::{CStr, c_char, c_int};

use kyocho_microprocess::{Builder, Priority};

use crate::answer::answer;
use crate::error::{Code, Result};
use crate::object::{Kind, Object};

/// The largest stack.
const STACK_BYTES_MAX: usize = 8 << 20;
/// The default stack of a microprocess.
const STACK_BYTES_DEFAULT: usize = 64 << 10;
/// The default stack of the first microprocess.
const FIRST_STACK_BYTES: usize = STACK_BYTES_MAX;
/// Length of a name with its final zero byte.
const NAME_BYTES: usize = 40;
/// Stands for the priority of the spawning microprocess.
const INHERITED: u8 = u8::MAX;

const JOINABLE: u32 = 0;
const DETACHED: u32 = 1;

/// The contents of `kyocho_attr_t`; the object's `detail` is the detach state.
#[derive(Debug, Clone)]
pub(crate) struct Attributes {
    stack_bytes: u32,
    priority: u8,
    name_bytes: u8,
    name: [u8; NAME_BYTES],
}

// SAFETY: the size is that of `kyocho_attr_t`; there is no static initialiser.
unsafe impl Kind for Attributes {
    const MAGIC: u32 = 0x6b79_6174;
    const C_BYTES: usize = 64;
}

type Attr = Object<Attributes>;

impl Attributes {
    const DEFAULT: Self = Self {
        stack_bytes: STACK_BYTES_DEFAULT as u32,
        priority: INHERITED,
        name_bytes: 0,
        name: [0; NAME_BYTES],
    };

    fn builder(&self) -> Builder {
        let mut builder = Builder::new().stack_bytes(self.stack_bytes as usize);
        if let Some(priority) = Priority::new(self.priority) {
            builder = builder.priority(priority);
        }
        match self.name.get(..usize::from(self.name_bytes)).map(str::from_utf8) {
            Some(Ok(name)) if !name.is_empty() => builder.name(name),
            _ => builder,
        }
    }
}

/// Settings of a new microprocess.
pub(crate) struct Settings {
    pub(crate) builder: Builder,
    pub(crate) detached: bool,
}

/// The settings that `attributes` contain; null stands for the defaults.
///
/// # Safety
/// `attributes` is null or memory for attributes.
pub(crate) unsafe fn wanted(attributes: *const Attr) -> Result<Settings> {
    if attributes.is_null() {
        return Ok(Settings { builder: Builder::new(), detached: false });
    }
    // SAFETY: guaranteed by the caller.
    let attributes = unsafe { Attr::at(attributes) }?;
    let detached = attributes.detail == DETACHED;
    Ok(Settings { builder: attributes.value.builder(), detached })
}

/// The same for the first microprocess.
///
/// # Safety
/// As for [`wanted`].
pub(crate) unsafe fn wanted_first(attributes: *const Attr) -> Result<Builder> {
    if attributes.is_null() {
        return Ok(Builder::new().stack_bytes(FIRST_STACK_BYTES).name("main"));
    }
    // SAFETY: guaranteed by the caller.
    unsafe { wanted(attributes) }.map(|wanted| wanted.builder)
}

/// Changes the attributes at `place`.
///
/// # Safety
/// `place` is null or memory for attributes, which no other thread uses now.
unsafe fn change(place: *mut Attr, change: impl FnOnce(&mut Attr) -> Result<()>) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { Attr::at(place) }?;
        // SAFETY: there is an object, and no other thread uses it now.
        change(unsafe { &mut *place })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_attr_init(attributes: *mut Attr) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { Attr::create(attributes, JOINABLE, Attributes::DEFAULT) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_attr_destroy(attributes: *mut Attr) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { Attr::at(attributes) }.map(Attr::destroy))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_attr_setstacksize(attributes: *mut Attr, bytes: usize) -> c_int {
    let set = |attributes: &mut Attr| {
        if bytes == 0 || bytes > STACK_BYTES_MAX {
            return Err(Code::INVALID);
        }
        attributes.value.stack_bytes = bytes as u32;
        Ok(())
    };
    // SAFETY: guaranteed by the caller.
    unsafe { change(attributes, set) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_attr_getstacksize(attributes: *const Attr, bytes: *mut usize) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let attributes = unsafe { Attr::at(attributes) }?;
        // SAFETY: as above.
        let place = unsafe { bytes.as_mut() }.ok_or(Code::INVALID)?;
        *place = attributes.value.stack_bytes as usize;
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_attr_setpriority(attributes: *mut Attr, priority: c_int) -> c_int {
    let set = |attributes: &mut Attr| {
        attributes.value.priority = level(priority)?.level();
        Ok(())
    };
    // SAFETY: guaranteed by the caller.
    unsafe { change(attributes, set) }
}

/// The priority with this number.
pub(crate) fn level(number: c_int) -> Result<Priority> {
    u8::try_from(number).ok().and_then(Priority::new).ok_or(Code::INVALID)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_attr_setdetachstate(attributes: *mut Attr, state: c_int) -> c_int {
    let set = |attributes: &mut Attr| match u32::try_from(state) {
        Ok(state @ (JOINABLE | DETACHED)) => {
            attributes.detail = state;
            Ok(())
        }
        _ => Err(Code::INVALID),
    };
    // SAFETY: guaranteed by the caller.
    unsafe { change(attributes, set) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_attr_getdetachstate(
    attributes: *const Attr,
    state: *mut c_int,
) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let attributes = unsafe { Attr::at(attributes) }?;
        // SAFETY: as above.
        *unsafe { state.as_mut() }.ok_or(Code::INVALID)? = attributes.detail as c_int;
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_attr_setname(attributes: *mut Attr, name: *const c_char) -> c_int {
    let set = |attributes: &mut Attr| {
        if name.is_null() {
            return Err(Code::INVALID);
        }
        // SAFETY: guaranteed by the caller: a string that ends with a zero byte.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Code::INVALID)?;
        let fits = |&bytes: &usize| name.is_char_boundary(bytes);
        let bytes = (0..=name.len().min(NAME_BYTES - 1)).rev().find(fits).unwrap_or(0);
        attributes.value.name[..bytes].copy_from_slice(&name.as_bytes()[..bytes]);
        attributes.value.name_bytes = bytes as u8;
        Ok(())
    };
    // SAFETY: guaranteed by the caller.
    unsafe { change(attributes, set) }
}
