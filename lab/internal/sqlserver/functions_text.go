package sqlserver

import (
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

func init() { register(textFunctions) }

var anyText = textType(-1)

func sizedLikeFirst(args []scalar) tds.Type {
	if isText(args[0].typ.Kind) && args[0].typ.Size > 0 {
		return textType(args[0].typ.Size)
	}
	return textType(4000)
}

// onText is a function of one text.
func onText(f func(string) string) function {
	return function{least: 1, most: 1, args: anyText, result: sizedLikeFirst, eval: func(_ *run, a []any) (any, error) {
		return f(a[0].(string)), nil
	}}
}

var textFunctions = map[string]function{
	"upper": onText(strings.ToUpper),
	"lower": onText(strings.ToLower),
	"ltrim": onText(func(s string) string { return strings.TrimLeft(s, " ") }),
	"rtrim": onText(func(s string) string { return strings.TrimRight(s, " ") }),
	"trim":  onText(func(s string) string { return strings.Trim(s, " ") }),
	"len": {least: 1, most: 1, args: anyText, result: always(typeInt), eval: func(_ *run, a []any) (any, error) {
		return int64(textLength(strings.TrimRight(a[0].(string), " "))), nil
	}},
	"datalength": {least: 1, most: 1, result: always(typeInt), eval: dataLength},
	"substring":  {least: 3, most: 3, result: always(textType(4000)), eval: substring},
	"left": {least: 2, most: 2, result: always(textType(4000)), eval: func(r *run, a []any) (any, error) {
		return substring(r, []any{a[0], int64(1), a[1]})
	}},
	"right": {least: 2, most: 2, result: always(textType(4000)), eval: right},
	"replace": {least: 3, most: 3, args: anyText, result: always(textType(4000)), eval: func(_ *run, a []any) (any, error) {
		return replaceFold(a[0].(string), a[1].(string), a[2].(string)), nil
	}},
	"charindex": {least: 2, most: 2, args: anyText, result: always(typeInt), eval: func(_ *run, a []any) (any, error) {
		at := strings.Index(fold(a[1].(string)), fold(a[0].(string)))
		if at < 0 || a[0] == "" {
			return int64(0), nil
		}
		return int64(textLength(fold(a[1].(string))[:at])) + 1, nil
	}},
	"replicate": {least: 2, most: 2, result: always(textType(4000)), eval: replicate},
	"space": {least: 1, most: 1, args: typeInt, result: always(textType(4000)), eval: func(r *run, a []any) (any, error) {
		return replicate(r, []any{" ", a[0]})
	}},
	"concat": {least: 2, most: 254, nulls: true, result: always(anyText), eval: concat},
	"quotename": {least: 1, most: 1, args: anyText, result: always(textType(258)), eval: func(_ *run, a []any) (any, error) {
		return "[" + strings.ReplaceAll(a[0].(string), "]", "]]") + "]", nil
	}},
	"char": {least: 1, most: 1, args: typeInt, result: always(textType(1)), eval: func(_ *run, a []any) (any, error) {
		return string(rune(a[0].(int64) & 0xff)), nil
	}},
	"nchar": {least: 1, most: 1, args: typeInt, result: always(textType(1)), eval: func(_ *run, a []any) (any, error) {
		return string(rune(a[0].(int64) & 0xffff)), nil
	}},
	"unicode": {least: 1, most: 1, args: anyText, result: always(typeInt), eval: func(_ *run, a []any) (any, error) {
		for _, r := range a[0].(string) {
			return int64(r), nil
		}
		return nil, nil
	}},
	"newid": {result: always(typeGUID), eval: func(r *run, _ []any) (any, error) { return r.inst.newGUID(), nil }},
}

func dataLength(_ *run, args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return int64(len(utf16Bytes(v))), nil
	case []byte:
		return int64(len(v)), nil
	case int64:
		return int64(4), nil
	case bool:
		return int64(1), nil
	case [16]byte:
		return int64(16), nil
	}
	return int64(8), nil
}

func textAndNumbers(args []any) (string, []int64, error) {
	s, err := toText(args[0], 0)
	if err != nil {
		return "", nil, err
	}
	var numbers []int64
	for _, v := range args[1:] {
		n, err := wholeNumber(v, typeInt)
		if err != nil {
			return "", nil, err
		}
		numbers = append(numbers, n)
	}
	return s, numbers, nil
}

func substring(_ *run, args []any) (any, error) {
	s, n, err := textAndNumbers(args)
	if err != nil {
		return nil, err
	}
	if n[1] < 0 {
		return nil, tsql.Errorf(537, 0, "Invalid length parameter passed to the LEFT or SUBSTRING function.")
	}
	runes := []rune(s)
	size := int64(len(runes))
	from := min(max(n[0]-1, 0), size)
	to := min(max(n[0]-1+n[1], from), size)
	return string(runes[from:to]), nil
}

func right(_ *run, args []any) (any, error) {
	s, n, err := textAndNumbers(args)
	if err != nil {
		return nil, err
	}
	if n[0] < 0 {
		return nil, tsql.Errorf(536, 0, "Invalid length parameter passed to the RIGHT function.")
	}
	runes := []rune(s)
	return string(runes[max(0, int64(len(runes))-n[0]):]), nil
}

func replicate(_ *run, args []any) (any, error) {
	s, n, err := textAndNumbers(args)
	if err != nil || n[0] < 0 {
		return nil, err
	}
	if s == "" {
		return "", nil
	}
	return strings.Repeat(s, int(min(n[0], 4000/int64(len(s))))), nil
}

func concat(_ *run, args []any) (any, error) {
	var b strings.Builder
	for _, v := range args {
		if v == nil {
			continue
		}
		s, err := toText(v, 0)
		if err != nil {
			return nil, err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

// replaceFold replaces without regard to case, as the default collation does.
func replaceFold(s, old, with string) string {
	if old == "" {
		return s
	}
	var b strings.Builder
	lowerS, lowerOld := strings.ToLower(s), strings.ToLower(old)
	if len(lowerS) != len(s) { // case changes the length: compare exactly
		return strings.ReplaceAll(s, old, with)
	}
	for {
		i := strings.Index(lowerS, lowerOld)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i] + with)
		s, lowerS = s[i+len(lowerOld):], lowerS[i+len(lowerOld):]
	}
}
