package vcenter

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/vmware/govmomi/vapi/rest"
)

// vapiResults are the operations that the simulator serves over REST, each with its result: a structure, a list of structures,
// or text if it is "".
var vapiResults = map[string]map[string]string{
	"com.vmware.cis.session": {"create": "SECRET", "get": "com.vmware.cis.session.info", "delete": "void"},
	"com.vmware.cis.tagging.category": {
		"create": "", "get": "com.vmware.cis.tagging.category_model", "update": "void", "delete": "void", "list": "",
	},
	"com.vmware.cis.tagging.tag": {
		"create": "", "get": "com.vmware.cis.tagging.tag_model", "update": "void", "delete": "void", "list": "", "list_tags_for_category": "",
	},
	"com.vmware.cis.tagging.tag_association": {
		"attach": "void", "detach": "void", "list_attached_objects": "com.vmware.vapi.std.dynamic_ID", "list_attached_tags": "",
		"attach_multiple_tags_to_object": "com.vmware.cis.tagging.tag_association.batch_result",
		"list_attached_objects_on_tags":  "com.vmware.cis.tagging.tag_association.tag_to_objects",
		"list_attached_tags_on_objects":  "com.vmware.cis.tagging.tag_association.object_to_tags",
	},
}

// vapiFields are the fields of structures that REST leaves out when they are empty, or that hold structures.
var vapiFields = map[string]map[string]string{
	"com.vmware.cis.tagging.category_model":                 {"description": "text", "associable_types": "", "used_by": ""},
	"com.vmware.cis.tagging.tag_model":                      {"description": "text", "used_by": ""},
	"com.vmware.cis.tagging.tag_association.batch_result":   {"error_messages": "com.vmware.vapi.std.localizable_message"},
	"com.vmware.cis.tagging.tag_association.tag_to_objects": {"object_ids": "com.vmware.vapi.std.dynamic_ID"},
	"com.vmware.cis.tagging.tag_association.object_to_tags": {"object_id": "com.vmware.vapi.std.dynamic_ID", "tag_ids": ""},
	"com.vmware.vapi.std.localizable_message":               {"args": ""},
}

// vapiVerbs are the methods of HTTP that need no `~action`.
var vapiVerbs = map[string]string{"create": "POST", "get": "GET", "list": "GET", "update": "PATCH", "delete": "DELETE"}

// vapiCall is a request in vAPI's JSON-RPC.
type vapiCall struct {
	ID     any    `json:"id"`
	Method string `json:"method"`
	Params struct {
		Service   string `json:"serviceId"`
		Operation string `json:"operationId"`
		Input     any    `json:"input"`
		Context   struct {
			Security struct {
				Scheme   string `json:"schemeId"`
				User     string `json:"userName"`
				Password string `json:"password"`
				Session  string `json:"sessionId"`
			} `json:"securityCtx"`
		} `json:"ctx"`
	} `json:"params"`
}

// serveJSONRPC translates vAPI's JSON-RPC into calls of the REST API.
func serveJSONRPC(api http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var call vapiCall
		reply := map[string]any{"jsonrpc": "2.0"}
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil || call.Method != "invoke" {
			reply["error"] = map[string]any{"code": -32600, "message": "Invalid Request."}
		} else {
			reply["result"] = call.through(api)
		}
		reply["id"] = call.ID
		answer(w, http.StatusOK, reply)
	}
}

// serveSession serves the session's path since vSphere 7.
func serveSession(api http.Handler, success int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.URL = &url.URL{Path: rest.Path + tagging[0]}
		status, value, _ := askREST(api, r)
		if status != http.StatusOK {
			answer(w, status, map[string]any{"error_type": "UNAUTHENTICATED", "messages": []any{}})
		} else if success == http.StatusNoContent {
			w.WriteHeader(success)
		} else {
			answer(w, success, value)
		}
	}
}

// askREST returns status, value and kind of error.
func askREST(api http.Handler, request *http.Request) (status int, value any, kind string) {
	response := httptest.NewRecorder()
	api.ServeHTTP(response, request)
	var body struct {
		Type  string `json:"type"`
		Value any    `json:"value"`
	}
	_ = json.Unmarshal(response.Body.Bytes(), &body) // empty if there is nothing to tell
	return response.Code, body.Value, strings.TrimPrefix(body.Type, "com.vmware.vapi.std.errors.")
}

func (c *vapiCall) through(api http.Handler) map[string]any {
	structure, known := vapiResults[c.Params.Service][c.Params.Operation]
	if !known {
		text := "vnuma-lab does not model " + c.Params.Service + "." + c.Params.Operation
		message := map[string]any{"id": "vnuma-lab", "default_message": text}
		return vapiError("operation_not_found", asVAPI(message, "com.vmware.vapi.std.localizable_message"))
	}
	status, value, kind := askREST(api, c.overREST())
	if status == http.StatusOK {
		return map[string]any{"output": asVAPI(value, structure)}
	}
	if kind == "" {
		kind = map[int]string{http.StatusUnauthorized: "unauthenticated", http.StatusNotFound: "not_found"}[status]
	}
	return vapiError(cmp.Or(kind, "invalid_argument"))
}

// overREST is the call as a request of the REST API, where IDs are in the path.
func (c *vapiCall) overREST() *http.Request {
	input, _ := fromVAPI(c.Params.Input).(map[string]any)
	body, _ := json.Marshal(input) // it came as JSON
	target := &url.URL{Path: rest.Path + "/" + strings.NewReplacer(".", "/", "_", "-").Replace(c.Params.Service)}
	request := &http.Request{Method: vapiVerbs[c.Params.Operation], URL: target, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
	for _, value := range input {
		if id, ok := value.(string); ok {
			target.Path += "/id:" + id
		}
	}
	if request.Method == "" {
		request.Method, target.RawQuery = http.MethodPost, "~action="+strings.ReplaceAll(c.Params.Operation, "_", "-")
	}
	switch security := c.Params.Context.Security; security.Scheme {
	case "com.vmware.vapi.std.security.user_pass":
		request.SetBasicAuth(security.User, security.Password)
	case "com.vmware.vapi.std.security.session_id":
		request.Header.Set("vmware-api-session-id", security.Session)
	}
	return request
}

// fromVAPI is a value of vAPI without the names of its types.
func fromVAPI(value any) any {
	switch typed := value.(type) {
	case []any:
		for i := range typed {
			typed[i] = fromVAPI(typed[i])
		}
	case map[string]any:
		for name, inside := range typed {
			if name == "STRUCTURE" || name == "OPTIONAL" || strings.ContainsAny(name, ".-") { // the last is a structure's name
				return fromVAPI(inside)
			}
			typed[name] = fromVAPI(inside)
		}
	}
	return value
}

// asVAPI names the types of a value from REST, where an empty list is null.
func asVAPI(value any, structure string) any {
	switch typed := value.(type) {
	case nil:
		switch structure {
		case "void":
			return nil
		case "text":
			return ""
		}
		return []any{}
	case string:
		if structure == "SECRET" {
			return map[string]any{structure: typed}
		}
	case []any:
		for i := range typed {
			typed[i] = asVAPI(typed[i], structure)
		}
	case map[string]any:
		for name, inside := range vapiFields[structure] {
			typed[name] = asVAPI(typed[name], inside)
		}
		return map[string]any{"STRUCTURE": map[string]any{structure: typed}}
	}
	return value
}

func vapiError(kind string, messages ...any) map[string]any {
	return map[string]any{"error": map[string]any{"ERROR": map[string]any{"com.vmware.vapi.std.errors." + kind: map[string]any{
		"messages": append([]any{}, messages...), "data": map[string]any{"OPTIONAL": nil},
		"error_type": map[string]any{"OPTIONAL": strings.ToUpper(kind)},
	}}}}
}
