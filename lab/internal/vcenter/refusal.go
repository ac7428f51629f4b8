package vcenter

import (
	"encoding/xml"
	"fmt"
	"log"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// refusal is why an operation is not carried out: the fault as the API types it, and its sentence.
type refusal struct {
	fault   types.BaseMethodFault
	message string
}

func (r *refusal) soap() *soap.Fault { return simulator.Fault(r.message, r.fault) }

func invalidArgument(property, format string, values ...any) *refusal {
	return &refusal{
		&types.InvalidArgument{InvalidProperty: property},
		"A specified parameter was not correct: " + property + ": " + fmt.Sprintf(format, values...),
	}
}

func invalidPower(requested, existing types.VirtualMachinePowerState) *refusal {
	fault := &types.InvalidPowerState{RequestedState: requested, ExistingState: existing}
	return &refusal{fault, fmt.Sprintf("The attempted operation cannot be performed in the current state (%s).", existing)}
}

func notSupported(format string, values ...any) *refusal {
	return &refusal{&types.NotSupported{}, "The operation is not supported on the object: " + fmt.Sprintf(format, values...)}
}

func cannotPowerOn(format string, values ...any) *refusal {
	reason := fmt.Sprintf(format, values...)
	return &refusal{&types.GenericVmConfigFault{Reason: reason}, "Failed to power on the virtual machine: " + reason}
}

// noSpace is what a full datastore answers: no swap file, no new .vmx.
func noSpace() *refusal {
	fault := &types.NoDiskSpace{FileFault: types.FileFault{File: "[" + datastore + "]"}, Datastore: datastore}
	return &refusal{fault, "Insufficient disk space on datastore '" + datastore + "'."}
}

// answering turns a panic inside a request into the fault with which a vCenter tells of its own failures.
func answering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch problem := recover(); problem {
			case nil:
			case http.ErrAbortHandler: // meant: the connection ends without an answer
				panic(problem)
			default:
				log.Printf("vnuma-lab failed inside a request: %v\n%s", problem, debug.Stack())
				var reason strings.Builder
				xml.EscapeText(&reason, []byte(fmt.Sprintf("vnuma-lab failed inside this request: %v", problem)))
				w.WriteHeader(http.StatusInternalServerError)
				fmt.Fprintf(w, systemError, reason.String())
			}
		}()
		next.ServeHTTP(w, r)
	})
}

const systemError = xml.Header + `<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><soapenv:Fault>
<faultcode>ServerFaultCode</faultcode><faultstring>A general system error occurred: %[1]s</faultstring>
<detail><SystemErrorFault xmlns="urn:vim25" xsi:type="SystemError"><reason>%[1]s</reason></SystemErrorFault></detail>
</soapenv:Fault></soapenv:Body></soapenv:Envelope>
`
