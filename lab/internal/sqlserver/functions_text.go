package sqlserver

import (
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

var anyText = textType(-1)

var textFunctions = map[string]function{
	"rtrim": {least: 1, most: 1, args: anyText, result: sizedLikeFirst, eval: func(_ *run, a []any) (any, error) {
		return strings.TrimRight(a[0].(string), " "), nil
	}},
	"right":     {least: 2, most: 2, result: always(textType(4000)), eval: right},
	"replicate": {least: 2, most: 2, result: always(textType(4000)), eval: replicate},
}

func sizedLikeFirst(args []scalar) tds.Type {
	if isText(args[0].typ.Kind) && args[0].typ.Size > 0 {
		return textType(args[0].typ.Size)
	}
	return textType(4000)
}

// textAndNumber are the two arguments of such functions.
func textAndNumber(args []any) (text string, n int64, err error) {
	if text, err = toText(args[0]); err == nil {
		n, err = wholeNumber(args[1], typeInt)
	}
	return text, n, err
}

func right(_ *run, args []any) (any, error) {
	s, n, err := textAndNumber(args)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, tsql.Errorf(536, 0, "Invalid length parameter passed to the RIGHT function.")
	}
	runes := []rune(s)
	return string(runes[max(0, int64(len(runes))-n):]), nil
}

func replicate(_ *run, args []any) (any, error) {
	s, n, err := textAndNumber(args)
	if err != nil || n < 0 {
		return nil, err
	}
	if s == "" {
		return "", nil
	}
	return strings.Repeat(s, int(min(n, 4000/int64(len(s))))), nil
}
