package tds

import (
	"encoding/binary"
	"strconv"
)

// Tokens of a response.
const (
	tokenReturnStatus = 0x79
	tokenColumns      = 0x81
	tokenError        = 0xAA
	tokenInfo         = 0xAB
	tokenReturnValue  = 0xAC
	tokenLoginAck     = 0xAD
	tokenRow          = 0xD1
	tokenEnvChange    = 0xE3
	tokenDone         = 0xFD
	tokenDoneProc     = 0xFE
	tokenDoneInProc   = 0xFF
)

// Status bits of a DONE.
const (
	doneMore      = 0x01
	doneError     = 0x02
	doneCount     = 0x10
	doneAttention = 0x20
)

// commandAttention is the command of a DONE that acknowledges attention.
const commandAttention = 0xFD

// Kinds of ENVCHANGE.
const (
	envDatabase   = 1
	envLanguage   = 2
	envPacketSize = 4
	envCollation  = 7
	envReset      = 18
)

// maxText bounds the text of a message in UTF-16 units, as SQL Server does (2,047 and an ellipsis aside).
const maxText = 2047

// maxName is what a B_VARCHAR holds.
const maxName = 255

// appendShortText adds a B_VARCHAR: a length byte in UTF-16 units, then the text.
func appendShortText(dst []byte, s string) []byte {
	s = clip(s, maxName)
	return AppendUTF16(append(dst, byte(LenUTF16(s))), s)
}

// appendText adds a US_VARCHAR: two length bytes in UTF-16 units, then the text.
func appendText(dst []byte, s string) []byte {
	return AppendUTF16(binary.LittleEndian.AppendUint16(dst, uint16(LenUTF16(s))), s)
}

// appendToken adds a token with a two-byte length around what body adds.
func appendToken(dst []byte, token byte, body func([]byte) []byte) []byte {
	dst = append(dst, token, 0, 0)
	at := len(dst)
	dst = body(dst)
	binary.LittleEndian.PutUint16(dst[at-2:], uint16(len(dst)-at))
	return dst
}

// appendMessage adds an ERROR or INFO token.
func appendMessage(dst []byte, token byte, m Message, server string) []byte {
	return appendToken(dst, token, func(b []byte) []byte {
		b = binary.LittleEndian.AppendUint32(b, uint32(m.Number))
		b = append(b, m.State, m.Class)
		b = appendText(b, clip(m.Text, maxText))
		b = appendShortText(b, server)
		b = appendShortText(b, m.Procedure)
		return binary.LittleEndian.AppendUint32(b, uint32(m.Line))
	})
}

// appendDone adds a DONE, DONEPROC or DONEINPROC token.
func appendDone(dst []byte, token byte, status, command uint16, count int64) []byte {
	dst = append(dst, token)
	dst = binary.LittleEndian.AppendUint16(dst, status)
	dst = binary.LittleEndian.AppendUint16(dst, command)
	return binary.LittleEndian.AppendUint64(dst, uint64(count))
}

// appendEnvText adds an ENVCHANGE whose values are texts.
func appendEnvText(dst []byte, kind byte, now, before string) []byte {
	return appendToken(dst, tokenEnvChange, func(b []byte) []byte {
		return appendShortText(appendShortText(append(b, kind), now), before)
	})
}

// appendEnvBytes adds an ENVCHANGE whose values are bytes.
func appendEnvBytes(dst []byte, kind byte, now, before []byte) []byte {
	return appendToken(dst, tokenEnvChange, func(b []byte) []byte {
		b = append(append(b, kind, byte(len(now))), now...)
		return append(append(b, byte(len(before))), before...)
	})
}

// appendLoginAck adds a LOGINACK; the protocol version is big-endian here, unlike in LOGIN7.
func appendLoginAck(dst []byte, protocol uint32, product [4]byte) []byte {
	return appendToken(dst, tokenLoginAck, func(b []byte) []byte {
		b = binary.BigEndian.AppendUint32(append(b, 1), protocol)
		b = appendShortText(b, "Microsoft SQL Server")
		return append(b, product[:]...)
	})
}

// appendColumns adds COLMETADATA.
func appendColumns(dst []byte, columns []Column) []byte {
	dst = append(dst, tokenColumns)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(columns)))
	for _, c := range columns {
		flags := uint16(0x08) // updatability unknown
		if c.Nullable {
			flags |= 0x01
		}
		dst = append(dst, 0, 0, 0, 0)
		dst = binary.LittleEndian.AppendUint16(dst, flags)
		dst = appendType(dst, c.Type)
		dst = appendShortText(dst, c.Name)
	}
	return dst
}

// productVersion is "16.0.4135.4" as the four bytes of PRELOGIN and LOGINACK: major, minor, build big-endian.
func productVersion(text string) [4]byte {
	var parts [3]int
	at := 0
	for _, r := range text + "." {
		switch {
		case r == '.':
			at++
		case at < len(parts) && r >= '0' && r <= '9':
			parts[at] = parts[at]*10 + int(r-'0')
		}
	}
	return [4]byte{byte(parts[0]), byte(parts[1]), byte(parts[2] >> 8), byte(parts[2])}
}

// loginReply is the response to an accepted login.
func loginReply(database string, r loginRequest, o Options) []byte {
	var b []byte
	if database != "" {
		b = appendEnvText(b, envDatabase, database, "master")
		b = appendMessage(b, tokenInfo, Message{Number: 5701, State: 2, Line: 1,
			Text: "Changed database context to '" + database + "'."}, o.ServerName)
	}
	b = appendEnvBytes(b, envCollation, collation[:], nil)
	b = appendEnvText(b, envLanguage, "us_english", "")
	b = appendMessage(b, tokenInfo, Message{Number: 5703, State: 1, Line: 1,
		Text: "Changed language setting to us_english."}, o.ServerName)
	b = appendLoginAck(b, r.version, productVersion(o.Version))
	b = appendEnvText(b, envPacketSize, strconv.Itoa(r.packetSize), strconv.Itoa(defaultPacketSize))
	return appendDone(b, tokenDone, 0, 0, 0)
}
