package tds

import "strings"

// collation is SQL_Latin1_General_CP1_CI_AS, the default of a US installation: LCID 0x0409, code page 1252.
var collation = [5]byte{0x09, 0x04, 0xD0, 0x00, 0x34}

// collationUTF8 is the flag, in the fourth byte of a collation, of the _UTF8 collations.
const collationUTF8 = 0x04

// high1252 is code page 1252 between 0x80 and 0x9F; the five unassigned bytes map to the control characters.
var high1252 = [32]rune{
	0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D, 0x017D, 0x8F,
	0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D, 0x017E, 0x0178,
}

func decode1252(b []byte) string {
	var out strings.Builder
	for _, c := range b {
		if c >= 0x80 && c < 0xA0 {
			out.WriteRune(high1252[c-0x80])
		} else {
			out.WriteRune(rune(c))
		}
	}
	return out.String()
}

// append1252 adds s; what the code page lacks becomes "?", as SQL Server converts.
func append1252(dst []byte, s string) []byte {
	for _, r := range s {
		dst = append(dst, byte1252(r))
	}
	return dst
}

func byte1252(r rune) byte {
	if r < 0x80 || r >= 0xA0 && r < 0x100 {
		return byte(r)
	}
	for i, h := range high1252 {
		if h == r {
			return byte(0x80 + i)
		}
	}
	return '?'
}
