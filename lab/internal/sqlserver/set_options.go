package sqlserver

import (
	"strconv"

	"vnuma.dev/lab/internal/tsql"
)

// setOption runs SET for a session option. Options that change nothing that the lab models are accepted.
func (b *batch) setOption(st *tsql.SetOption) (outcome, error) {
	o := &b.s.options
	on := st.Value == "ON"
	b.s.rowCount = 0
	switch st.Option {
	case "STATISTICS TIME":
		o.statisticsTime = on
		return outcome{silent: true}, nil
	case "STATISTICS XML":
		o.statisticsXML = on
	case "NOCOUNT":
		o.noCount = on
	case "XACT_ABORT":
		o.xactAbort = on
	case "TRANSACTION ISOLATION LEVEL":
		o.isolation = st.Value
	case "LANGUAGE":
		o.language = st.Value
	case "IMPLICIT_TRANSACTIONS":
		if on {
			return outcome{}, tsql.Unmodelled(st.Line(), "SET IMPLICIT_TRANSACTIONS ON")
		}
	case "PARSEONLY":
		o.parseOnly = on
	case "STATISTICS IO", "STATISTICS PROFILE", "FMTONLY", "NOEXEC", "SHOWPLAN_XML":
		if on {
			return outcome{}, tsql.Unmodelled(st.Line(), "SET %s ON", st.Option)
		}
	case "ROWCOUNT", "LOCK_TIMEOUT", "TEXTSIZE":
		return outcome{}, o.setNumber(st)
	}
	return outcome{}, nil
}

// endsParseOnly tells the one statement that takes effect while batches are parsed only. The server sets the
// option as it parses; here it holds from the next batch on, which is how vnuma sends it.
func endsParseOnly(st tsql.Statement) bool {
	option, ok := st.(*tsql.SetOption)
	return ok && option.Option == "PARSEONLY"
}

func (o *options) setNumber(st *tsql.SetOption) error {
	n, err := strconv.ParseInt(st.Value, 10, 64)
	if err != nil {
		return tsql.Errorf(102, st.Line(), "Incorrect syntax near '%s'.", st.Value)
	}
	switch st.Option {
	case "ROWCOUNT":
		o.rowLimit = n
	case "LOCK_TIMEOUT":
		o.lockTimeout = n
	default:
		o.textSize = n
	}
	return nil
}
