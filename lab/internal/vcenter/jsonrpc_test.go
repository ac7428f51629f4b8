package vcenter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// request asks a path over HTTP, and returns status and answer.
func (l *lab) request(method, path, body string, headers ...string) (int, any) {
	l.t.Helper()
	request, err := http.NewRequestWithContext(l.ctx, method, "https://"+l.server.Addr().String()+path, bytes.NewBufferString(body))
	l.must(err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := l.connect().Client.Client.Do(request)
	l.must(err)
	defer response.Body.Close()
	var answer any
	_ = json.NewDecoder(response.Body).Decode(&answer)
	return response.StatusCode, answer
}

// invoke calls `service.operation` by JSON-RPC, and returns what it put out and the name of its error.
func (l *lab) invoke(name, security, input string) (any, string) {
	l.t.Helper()
	dot := strings.LastIndex(name, ".")
	_, answer := l.request(http.MethodPost, "/api", fmt.Sprintf(`{"jsonrpc": "2.0", "id": "7", "method": "invoke", "params": {"serviceId": "com.vmware.cis.%s",
		"operationId": "%s", "ctx": {"appCtx": {}, "securityCtx": {"schemeId": "com.vmware.vapi.std.security.%s}},
		"input": {"STRUCTURE": {"operation-input": {%s}}}}}`, name[:dot], name[dot+1:], security, input))
	reply := answer.(map[string]any)
	if reply["jsonrpc"] != "2.0" || reply["id"] != "7" {
		l.t.Errorf("%v", reply)
	}
	result := reply["result"].(map[string]any)
	if failed, ok := result["error"].(map[string]any); ok {
		for kind := range failed["ERROR"].(map[string]any) {
			return nil, strings.TrimPrefix(kind, "com.vmware.vapi.std.errors.")
		}
	}
	return result["output"], ""
}

func (l *lab) withPassword(password string) string {
	return fmt.Sprintf(`user_pass", "userName": "%s", "password": "%s"`, l.server.administrator(), password)
}

// session logs in by JSON-RPC, and returns the security context of the session.
func (l *lab) session() string {
	l.t.Helper()
	made, failed := l.invoke("session.create", l.withPassword(testPassword), "")
	if failed != "" {
		l.t.Fatal(failed)
	}
	return fmt.Sprintf(`session_id", "sessionId": "%s"`, made.(map[string]any)["SECRET"])
}

func TestASessionOverJSONRPCEndsWhenItIsDeleted(t *testing.T) {
	l := startLab(t, "")
	session := l.session()
	info, _ := l.invoke("session.get", session, "")
	fields := info.(map[string]any)["STRUCTURE"].(map[string]any)["com.vmware.cis.session.info"].(map[string]any)
	if fields["user"] != l.server.administrator() {
		t.Errorf("%v", info)
	}
	if _, failed := l.invoke("session.delete", session, ""); failed != "" {
		t.Error(failed)
	}
	if _, failed := l.invoke("session.get", session, ""); failed != "unauthenticated" {
		t.Errorf("%q", failed)
	}
}

func TestJSONRPCAdmitsTheRightPasswordAndAnOpenSessionAlone(t *testing.T) {
	l := startLab(t, "")
	for name, security := range map[string]string{
		"session.create":        l.withPassword("wrong"),
		"tagging.category.list": l.withPassword(testPassword), // without a session
		"tagging.tag.list":      `session_id", "sessionId": "guessed"`,
		"session.get":           `saml_bearer_token", "samlToken": "<Assertion/>"`,
	} {
		if _, failed := l.invoke(name, security, ""); failed != "unauthenticated" {
			t.Errorf("%s: %q", name, failed)
		}
	}
}

func TestTagsAreMadeAndReadOverJSONRPC(t *testing.T) {
	l := startLab(t, "")
	session := l.session()
	do := func(name, input string) any {
		out, failed := l.invoke("tagging."+name, session, input)
		if failed != "" {
			t.Errorf("%s: %s", name, failed)
		}
		return out
	}
	spec := `"create_spec": {"STRUCTURE": {"com.vmware.cis.tagging.%s.create_spec": {"name": "%s", "category_id": %s}}}`
	category := do("category.create", fmt.Sprintf(spec, "category", "Tier", `{"OPTIONAL": null}`))
	tag := do("tag.create", fmt.Sprintf(spec, "tag", "Gold", fmt.Sprintf(`{"OPTIONAL": "%s"}`, category)))
	id := fmt.Sprintf(`"tag_id": "%s"`, tag)
	made := map[string]any{"STRUCTURE": map[string]any{"com.vmware.cis.tagging.tag_model": map[string]any{
		"id": tag, "category_id": category, "name": "Gold", "description": "", "used_by": []any{},
	}}}
	vm := map[string]any{"STRUCTURE": map[string]any{"com.vmware.vapi.std.dynamic_ID": map[string]any{"type": "VirtualMachine", "id": "vm-1"}}}
	tagged := map[string]any{"STRUCTURE": map[string]any{"com.vmware.cis.tagging.tag_association.object_to_tags": map[string]any{
		"object_id": vm, "tag_ids": []any{tag},
	}}}
	object, _ := json.Marshal(vm)
	on := fmt.Sprintf(`%s, "object_id": %s`, id, object)
	for _, step := range []struct {
		name, input string
		output      any
	}{
		{"tag.get", id, made},
		{"tag.list_tags_for_category", fmt.Sprintf(`"category_id": "%s"`, category), []any{tag}},
		{"tag_association.list_attached_objects", id, []any{}},
		{"tag_association.attach", on, nil},
		{"tag_association.list_attached_objects", id, []any{vm}},
		{"tag_association.list_attached_tags", fmt.Sprintf(`"object_id": %s`, object), []any{tag}},
		{"tag_association.list_attached_tags_on_objects", fmt.Sprintf(`"object_ids": [%s]`, object), []any{tagged}},
		{"tag_association.detach", on, nil},
		{"tag_association.list_attached_objects", id, []any{}},
		{"tag.delete", id, nil},
		{"tag.list", "", []any{}},
	} {
		if out := do(step.name, step.input); !reflect.DeepEqual(out, step.output) {
			t.Errorf("%s: %v instead of %v", step.name, out, step.output)
		}
	}
}

func TestJSONRPCNamesItsErrorsAsVAPIDoes(t *testing.T) {
	l := startLab(t, "tags: [{category: Tier, name: Gold}]")
	session := l.session()
	named := `"create_spec": {"STRUCTURE": {"com.vmware.cis.tagging.category.create_spec": {"name": "Tier"}}}`
	for _, c := range []struct{ name, input, kind string }{
		{"tagging.category.create", named, "already_exists"},
		{"tagging.category.create", strings.Replace(named, `"Tier"`, "7", 1), "invalid_argument"},
		{"tagging.tag.get", `"tag_id": "unknown"`, "not_found"},
		{"tagging.tag.update", `"tag_id": "unknown"`, "not_found"},
		{"tagging.tag_association.detach_tag_from_multiple_objects", "", "operation_not_found"},
		{"tasks.list", "", "operation_not_found"},
	} {
		if _, failed := l.invoke(c.name, session, c.input); failed != c.kind {
			t.Errorf("%s: %q", c.name, failed)
		}
	}
	for _, body := range []string{"{", `{"jsonrpc": "2.0", "id": "1", "method": "list"}`} {
		_, answer := l.request(http.MethodPost, "/api", body)
		if code := answer.(map[string]any)["error"].(map[string]any)["code"]; code != -32600.0 {
			t.Errorf("%s: %v", body, code)
		}
	}
}

func TestTheNewerPathOfTheSessionIsServed(t *testing.T) {
	l := startLab(t, "")
	basic := func(password string) string {
		request := &http.Request{Header: http.Header{}}
		request.SetBasicAuth(l.server.administrator(), password)
		return request.Header.Get("Authorization")
	}
	for _, wrong := range []string{basic("wrong"), "SIGN anything", ""} {
		if status, _ := l.request(http.MethodPost, "/api/session", "", "Authorization", wrong); status != http.StatusUnauthorized {
			t.Errorf("%q: HTTP %d", wrong, status)
		}
	}
	status, made := l.request(http.MethodPost, "/api/session", "", "Authorization", basic(testPassword))
	if status != http.StatusCreated {
		t.Errorf("HTTP %d", status)
	}
	for _, want := range []struct {
		method string
		status int
	}{{http.MethodGet, http.StatusOK}, {http.MethodDelete, http.StatusNoContent}, {http.MethodGet, http.StatusUnauthorized}} {
		if status, _ := l.request(want.method, "/api/session", "", "vmware-api-session-id", made.(string)); status != want.status {
			t.Errorf("%s: HTTP %d", want.method, status)
		}
	}
}
