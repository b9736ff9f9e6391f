//! Amounts of memory that Slurm prints as text. Its `K`, `M`, `G`, … are powers of 1024.

use super::ParseError;
use super::number::{binary, power, small};
use crate::unit::Bytes;

/// What a number without a letter counts. It depends on the column, so the reader must say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bare {
    /// Usage columns of `sacct --noconvert` since Slurm 18.08.
    Bytes,
    /// Usage columns of older Slurm, and of tools that imitate them.
    Kib,
    /// What people write: `--mem`, `RealMemory`.
    Mib,
}

impl Bare {
    fn bytes(self) -> u64 {
        match self {
            Bare::Bytes => 1,
            Bare::Kib => 1 << 10,
            Bare::Mib => 1 << 20,
        }
    }
}

const SIZE: &str = "an amount of memory such as 500M or 1.5T";
const REQUEST: &str = "a memory request such as 4G, 4Gn or 2Gc";

/// Reads an amount: MaxRSS, AveRSS, `--mem`. Empty is `None`; zero is zero.
///
/// # Errors
/// If the text is no amount, `16?` among others, or more than 64 bits of bytes.
pub fn size(text: &str, bare: Bare) -> Result<Option<Bytes>, ParseError> {
    if text.is_empty() {
        return Ok(None);
    }
    match binary(text, bare.bytes()) {
        Some(bytes) => Ok(Some(Bytes::new(bytes))),
        None => Err(ParseError::new("memory", text, SIZE)),
    }
}

/// How much memory a job asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryRequest {
    /// On each node: `4Gn`.
    PerNode(Bytes),
    /// For each CPU: `2Gc`.
    PerCpu(Bytes),
    /// In all: `4G`, as sacct prints since Slurm 21.08.
    InAll(Bytes),
}

impl MemoryRequest {
    /// The request for a job of this size; `None` if that is more than 64 bits of bytes.
    #[must_use]
    pub fn in_all(self, nodes: u64, cpus: u64) -> Option<Bytes> {
        match self {
            MemoryRequest::PerNode(bytes) => bytes.checked_mul(nodes),
            MemoryRequest::PerCpu(bytes) => bytes.checked_mul(cpus),
            MemoryRequest::InAll(bytes) => Some(bytes),
        }
    }
}

/// What nearly all of sacct's ReqMem are since Slurm 21.08, `16384M`: an amount in all that is not
/// zero. `None` of others, whatever they are.
#[inline]
pub(crate) fn usual_request(text: &[u8]) -> Option<Bytes> {
    let (letter, number) = text.split_last()?;
    let amount = u64::from(small(number).filter(|number| *number > 0)?);
    amount.checked_mul(power(*letter)?).map(Bytes::new)
}

/// Reads sacct's ReqMem. A number without a letter is KiB.
///
/// Empty, `0`, `0n` and `0c` are `None`: Slurm prints zero both for a request of all memory of the
/// nodes and for no request, so that no amount is stated.
///
/// # Errors
/// If the text is no request.
pub fn request(text: &str) -> Result<Option<MemoryRequest>, ParseError> {
    let (amount, kind): (&str, fn(Bytes) -> MemoryRequest) =
        if let Some(amount) = text.strip_suffix('n') {
            (amount, MemoryRequest::PerNode)
        } else if let Some(amount) = text.strip_suffix('c') {
            (amount, MemoryRequest::PerCpu)
        } else {
            (text, MemoryRequest::InAll)
        };
    if text.is_empty() {
        return Ok(None);
    }
    match binary(amount, Bare::Kib.bytes()) {
        Some(0) => Ok(None),
        Some(bytes) => Ok(Some(kind(Bytes::new(bytes)))),
        None => Err(ParseError::new("requested memory", text, REQUEST)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Bare, MemoryRequest, request, size, usual_request};
    use crate::unit::Bytes;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn sizes() {
        let cases = [
            ("A1 gibi", "4G", 4096 * MIB),
            ("A1 mebi", "4000M", 4000 * MIB),
            ("A1 kibi", "512K", MIB / 2),
            ("A1 fraction", "1.5T", 1_572_864 * MIB),
            ("A1 kibi as mebi", "1048576K", 1024 * MIB),
            ("A4 bare", "1024", MIB),
            ("A4 bare, odd", "123456", 123_456 * 1024),
            ("nothing used", "0", 0),
            ("nothing, in kibi", "0K", 0),
        ];
        for (case, text, bytes) in cases {
            assert_eq!(size(text, Bare::Kib), Ok(Some(Bytes::new(bytes))), "{case}");
        }
        assert_eq!(size("", Bare::Kib), Ok(None));
    }

    #[test]
    fn a_bare_number_is_what_the_reader_says() {
        assert_eq!(size("2048", Bare::Bytes), Ok(Some(Bytes::new(2048))));
        assert_eq!(size("2048", Bare::Mib), Ok(Some(Bytes::new(2 << 30))));
        assert_eq!(size("2K", Bare::Mib), Ok(Some(Bytes::new(2048))));
    }

    #[test]
    fn sizes_that_are_none() {
        for text in ["16?", "N/A", "4GB", "4Gn", "-1", "1,5G", " 4G", "16E", "G", "0x10", "4 G"] {
            assert_eq!(size(text, Bare::Kib).unwrap_err().text, text, "{text:?}");
        }
    }

    #[test]
    fn requests() {
        let per_node = |n| Some(MemoryRequest::PerNode(Bytes::new(n)));
        let per_cpu = |n| Some(MemoryRequest::PerCpu(Bytes::new(n)));
        let in_all = |n| Some(MemoryRequest::InAll(Bytes::new(n)));
        let cases = [
            ("A2", "4Gn", per_node(4096 * MIB)),
            ("A2 mebi", "500Mn", per_node(500 * MIB)),
            ("A3", "2Gc", per_cpu(2048 * MIB)),
            ("in all", "16G", in_all(16 * 1024 * MIB)),
            ("bare", "1024", in_all(MIB)),
            ("fraction", "7.81Gc", per_cpu(8_385_923_645)),
            ("A5 nothing", "", None),
            ("A5 zero", "0", None),
            ("A5 zero per node", "0n", None),
            ("zero per cpu", "0Mc", None),
        ];
        for (case, text, expected) in cases {
            assert_eq!(request(text), Ok(expected), "{case}: {text:?}");
            let usual = usual_request(text.as_bytes()).map(MemoryRequest::InAll);
            assert_eq!(usual, expected.filter(|_| text == "16G"), "{case}: {text:?}");
        }
        for text in ["16?", "N/A", "n", "c", "4Gnn", "4GN", "-4G", "20E"] {
            assert_eq!(request(text).unwrap_err().text, text, "{text:?}");
        }
    }

    #[test]
    fn a_request_scales_with_the_job() {
        let in_all = |text| request(text).unwrap().unwrap().in_all(3, 8).unwrap();
        assert_eq!(in_all("2Gc"), Bytes::new(16_384 * MIB));
        assert_eq!(in_all("4Gn"), Bytes::new(12_288 * MIB));
        assert_eq!(in_all("4G"), Bytes::new(4_096 * MIB));
        assert_eq!(request("8Ec").unwrap().unwrap().in_all(1, 2), None);
    }

    proptest! {
        #[test]
        fn the_usual_requests_are_read_as_all_are(text in "[0-9]{0,12}[KMGTPEnc.]{0,2}") {
            if let Some(usual) = usual_request(text.as_bytes()) {
                prop_assert_eq!(request(&text), Ok(Some(MemoryRequest::InAll(usual))));
            }
        }

        #[test]
        fn never_panics(text in "\\PC*|[0-9.]{0,24}[KMGTPEnc?]{0,2}") {
            for bare in [Bare::Bytes, Bare::Kib, Bare::Mib] {
                if let Err(error) = size(&text, bare) {
                    prop_assert_eq!(&error.text, &text);
                }
            }
            if let Err(error) = request(&text) {
                prop_assert_eq!(&error.text, &text);
            }
        }
    }
}
