//! `cargo test --test fuzz_seeds`: runs the fuzz target on every line of `seeds/<target>.txt`, an
//! input in hexadecimal digits, and on random inputs. A failure names the line, or the number
//! beyond the last line by which the random input is made, for a panic as for a signal.

use std::cell::Cell;
use std::io::Write;
use std::panic::catch_unwind;
use std::sync::{OnceLock, PoisonError, RwLock};

use crate::random::Random;
use crate::targets;

thread_local! {
    /// The target and the line that this thread runs.
    static NOW: Cell<(&str, usize)> = const { Cell::new(("", 0)) };
}

const SIGNALS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];
/// The previous signal handlers: Rust's stack guard, or a sanitizer.
static BEFORE: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// Prints the input's line, and restores the previous handler: the instruction fails again, and
/// abort() raises its signal again.
extern "C" fn told(signal: i32) {
    let (target, line) = NOW.get();
    let mut text = [0u8; 80];
    let mut room = &mut text[..];
    let _ = writeln!(room, "\nsignal {signal} at fuzz/seeds/{target}.txt:{line}");
    let used = 80 - room.len();
    let at = SIGNALS.iter().position(|&other| other == signal);
    let before = at.and_then(|at| BEFORE.get()?.get(at));
    // SAFETY: initialized bytes; an action that was in force before.
    unsafe {
        libc::write(2, text.as_ptr().cast(), used);
        if let Some(before) = before {
            libc::sigaction(signal, before, std::ptr::null_mut());
        }
    }
}

fn listen() {
    BEFORE.get_or_init(|| {
        SIGNALS.map(|signal| {
            // SAFETY: zeros are an action without flags, which is then filled in; on the stack that
            // Rust has set aside, so that an overflow is reported as well.
            unsafe {
                let (mut action, mut before) = std::mem::zeroed::<[libc::sigaction; 2]>().into();
                action.sa_sigaction = told as *const () as usize;
                action.sa_flags = libc::SA_ONSTACK;
                assert_eq!(libc::sigaction(signal, &action, &mut before), 0);
                before
            }
        })
    });
}

fn input(line: &str) -> Vec<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16).expect("no hexadecimal digit") as u8;
    line.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// The n-th random input: short, of any bytes or of small ones.
fn random(n: usize) -> Vec<u8> {
    let mut random = Random(n as u64);
    let (length, small) = (random.below(160), random.below(3) == 0);
    (0..length).map(|_| random.next() as u8 >> if small { random.below(8) } else { 0 }).collect()
}

static LEVEL: RwLock<()> = RwLock::new(());

fn replay(target: &'static str, seeds: &str, run: fn(&[u8])) {
    const RANDOM: usize = if cfg!(miri) { 20 } else { 20_000 };
    listen();
    assert!(!seeds.is_empty());
    let seeds: Vec<_> = seeds.lines().map(input).collect();
    // `cast` changes the level of kernels, for all.
    let alone = target == "cast";
    for number in 1..=seeds.len() + RANDOM {
        NOW.set((target, number));
        let _alone = alone.then(|| LEVEL.write().unwrap_or_else(PoisonError::into_inner));
        let _beside = (!alone).then(|| LEVEL.read().unwrap_or_else(PoisonError::into_inner));
        let made = seeds.get(number - 1).cloned().unwrap_or_else(|| random(number - seeds.len()));
        if catch_unwind(|| run(&made)).is_err() {
            panic!("fuzz/seeds/{target}.txt:{number} fails as shown above: {made:02x?}");
        }
    }
}

macro_rules! replays {
    ($($target:ident)*) => {
        $(#[test]
        fn $target() {
            let seeds = include_str!(concat!("../seeds/", stringify!($target), ".txt"));
            replay(stringify!($target), seeds, targets::$target::run);
        })*
    };
}

replays!(validate convert_chain copy overlap names cast);
