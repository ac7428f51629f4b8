package sqlserver

import (
	"vnuma.dev/lab/internal/tsql"
)

// setOption runs SET for a session option. Options without effect on what the lab models are accepted.
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
	case "ROWCOUNT":
		if st.Value != "0" {
			return outcome{}, tsql.Unmodelled(st.Line(), "SET ROWCOUNT %s", st.Value)
		}
	}
	return outcome{}, nil
}

// endsParseOnly reports whether it is the one statement that takes effect under SET PARSEONLY ON. The server sets the
// option while parsing; the lab from the next batch on, which is how vnuma sends it.
func endsParseOnly(st tsql.Statement) bool {
	option, ok := st.(*tsql.SetOption)
	return ok && option.Option == "PARSEONLY"
}
