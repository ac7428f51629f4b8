package vcenter

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/vmware/govmomi/pbm"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"
)

func TestTagsAreReadOverREST(t *testing.T) {
	l := startLab(t, "tags: [{category: Tier, name: Gold, vms: [sql16]}, {category: Tier, name: Empty}]")
	client := rest.NewClient(l.connect())
	if err := client.Login(l.ctx, url.UserPassword(l.server.administrator(), "wrong")); err == nil {
		t.Error("a wrong password was accepted")
	}
	l.must(client.Login(l.ctx, url.UserPassword(l.server.administrator(), testPassword)))
	attached, err := tags.NewManager(client).GetAttachedTags(l.ctx, l.vm.Reference())
	if err != nil || len(attached) != 1 || attached[0].Name != "Gold" {
		t.Errorf("%+v, %v", attached, err)
	}
}

func TestNobodyLogsInToRESTBesideThePassword(t *testing.T) {
	l := startLab(t, "")
	status, _ := l.request(http.MethodPost, "/rest/com/vmware/cis/session", "", "Authorization", "SIGN anything")
	if status != http.StatusUnauthorized {
		t.Errorf("HTTP %d", status)
	}
}

func TestStoragePoliciesAreServed(t *testing.T) {
	l := startLab(t, "")
	if _, err := pbm.NewClient(l.ctx, l.connect()); err != nil {
		t.Error(err)
	}
}

func TestAHostByItselfHasNoTags(t *testing.T) {
	l := startLab(t, "standalone: true")
	if err := rest.NewClient(l.connect()).Login(l.ctx, url.UserPassword(l.server.administrator(), testPassword)); err == nil {
		t.Error("it has an API for tags")
	}
}
