package sqlserver

import "strings"

// substitute fills %s, %d and the like of RAISERROR with its arguments in order.
func substitute(text string, args []any) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' || i+1 >= len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		if text[i] == '%' {
			b.WriteByte('%')
			continue
		}
		if len(args) == 0 || args[0] == nil {
			b.WriteString("(null)")
		} else if s, err := toText(args[0], 0); err == nil {
			b.WriteString(s)
		}
		if len(args) > 0 {
			args = args[1:]
		}
	}
	return b.String()
}
