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
	"right":     {least: 2, most: 2, result: sizedLikeFirst, eval: right},
	"replicate": {least: 2, most: 2, result: always(textType(mostUnits)), eval: replicate},
}

const (
	mostUnits  = 4000     // UTF-16 units of a sized nvarchar
	mostRepeat = 16 << 20 // bytes of one REPLICATE; SQL Server: 2 GB
)

func sizedLikeFirst(args []scalar) tds.Type {
	if isText(args[0].typ.Kind) {
		return textType(args[0].typ.Size)
	}
	return textType(mostUnits)
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
	length := tds.LenUTF16(s)
	return tds.CutUTF16(s, int(max(0, int64(length)-n)), length), nil
}

// replicate cuts its result at 8,000 bytes (REPLICATE, Transact-SQL reference).
func replicate(_ *run, args []any) (any, error) {
	s, n, err := textAndNumber(args)
	if err != nil || n < 0 {
		return nil, err
	}
	return tds.CutUTF16(strings.Repeat(s, int(min(n, mostUnits))), 0, mostUnits), nil
}

// replicateMax is REPLICATE of a text of a max type, which it does not cut.
var replicateMax = function{least: 2, most: 2, result: always(anyText), eval: func(_ *run, args []any) (any, error) {
	s, n, err := textAndNumber(args)
	switch {
	case err != nil || n < 0:
		return nil, err
	case n > mostRepeat/int64(max(len(s), 1)):
		return nil, tsql.Unmodelled(0, "REPLICATE of more than 16 MB")
	}
	return strings.Repeat(s, int(n)), nil
}}
