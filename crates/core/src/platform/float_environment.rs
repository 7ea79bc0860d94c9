//! The processor's floating-point settings, which belong to the caller's thread.
//!
//! Conversions must not depend on the rounding direction, on flushing of subnormal numbers or on
//! traps that the host has set, and must not leave exception flags behind.
//!
//! The compiler knows of no tie between these registers and floating-point operations, but each
//! `asm!` here is volatile and may touch any memory (neither `pure` nor `nomem`): loads and stores
//! stay on their side of it. So an operation lies between [`FloatEnvironment::enter`] and
//! [`FloatEnvironment::leave`] when its operands are read from a caller's memory after the one, and
//! its result is stored where others see it before the other, as conversions do.

#[cfg(any(target_arch = "x86_64", all(target_arch = "x86", target_feature = "sse2")))]
mod register {
    use core::arch::asm;

    pub type Word = u32;
    /// Round to nearest, nothing flushed, no traps.
    pub const DEFAULT: Word = 0x1f80;

    pub fn read() -> Word {
        let mut word: Word = 0;
        // SAFETY: stores MXCSR into `word`.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack)) };
        word
    }

    pub fn write(word: Word) {
        // SAFETY: loads MXCSR with the default or with what was read from it.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod register {
    use core::arch::asm;

    pub type Word = (u64, u64);
    /// Round to nearest, nothing flushed, no traps, no flags.
    pub const DEFAULT: Word = (0, 0);

    pub fn read() -> Word {
        let (control, status): (u64, u64);
        // SAFETY: reads two registers.
        unsafe {
            asm!("mrs {}, fpcr", out(reg) control, options(nostack));
            asm!("mrs {}, fpsr", out(reg) status, options(nostack));
        }
        (control, status)
    }

    pub fn write((control, status): Word) {
        // SAFETY: loads both with the default or with what was read from them.
        unsafe {
            asm!("msr fpcr, {}", in(reg) control, options(nostack));
            asm!("msr fpsr, {}", in(reg) status, options(nostack));
        }
    }
}

#[cfg(not(any(
    target_arch = "x86_64",
    all(target_arch = "x86", target_feature = "sse2"),
    target_arch = "aarch64"
)))]
mod register {
    pub type Word = ();
    pub const DEFAULT: Word = ();
    pub fn read() -> Word {}
    pub fn write(_: Word) {}
}

/// The caller's settings, while the defaults are in force.
pub struct FloatEnvironment(register::Word);

impl FloatEnvironment {
    /// Puts the defaults in force.
    pub fn enter() -> Self {
        let callers = register::read();
        register::write(register::DEFAULT);
        FloatEnvironment(callers)
    }

    /// Gives the caller's settings and flags back.
    pub fn leave(self) {
        register::write(self.0);
    }
}
