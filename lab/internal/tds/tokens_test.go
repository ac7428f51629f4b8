package tds

import (
	"encoding/hex"
	"testing"
)

// Tokens have the bytes of MS-TDS; the expected ones were computed without this package.
func TestTokens(t *testing.T) {
	message := Message{Number: 3612, State: 1, Class: 0, Text: "\n CPU ż😀", Procedure: "dbo.p", Line: 7}
	columns := []Column{
		{"id", Type{Kind: KindInt32}, true}, {"ż", Type{Kind: KindNVarChar, Size: 25}, false},
		{"", Type{Kind: KindDecimal, Precision: 38, Scale: 6}, true},
	}
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"INFO", appendMessage(nil, tokenInfo, message, "LAB"),
			"ab30001c0e0000010009000a00200043005000550020007c013dd800de034c004100420005640062006f002e00700007000000"},
		{"DONE", appendDone(nil, tokenDone, doneMore|doneCount, CommandSelect, 9_000_000), "fd1100c1004054890000000000"},
		{"ENVCHANGE of texts", appendEnvText(nil, envDatabase, "new", "old"), "e30f0001036e0065007700036f006c006400"},
		{"ENVCHANGE of bytes", appendEnvBytes(nil, envReset, []byte{1, 0, 0, 0, 0, 0, 0, 0}, nil), "e30b001208010000000000000000"},
		{"LOGINACK", appendLoginAck(nil, version74, productVersion("16.0.4135.4")),
			"ad32000174000004144d006900630072006f0073006f00660074002000530051004c00200053006500720076006500720010001027"},
		{"COLMETADATA", appendColumns(nil, columns),
			"81030000000000090026040269006400000000000800e732000904d00034017c010000000009006c11260600"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// A message longer than a token holds is clipped between two characters.
func TestLongMessagesAreClipped(t *testing.T) {
	long := Message{Text: string(make([]rune, maxText-1)) + "😀 and more"}
	b := appendMessage(nil, tokenError, long, "")
	if want := 3 + 4 + 2 + 2 + 2*(maxText-1) + 1 + 1 + 4; len(b) != want {
		t.Errorf("%d bytes, want %d", len(b), want)
	}
}

// The product version is parsed as far as it is valid.
func TestProductVersion(t *testing.T) {
	for text, want := range map[string][4]byte{
		"15.0.4430.1": {15, 0, 0x11, 0x4E}, "16": {16, 0, 0, 0}, "": {}, "13.0.x": {13, 0, 0, 0},
	} {
		if got := productVersion(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
