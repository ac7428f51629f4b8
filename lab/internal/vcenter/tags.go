package vcenter

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	pbm "github.com/vmware/govmomi/pbm/simulator"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vapi/rest"
	vapi "github.com/vmware/govmomi/vapi/simulator"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"

	"vnuma.dev/lab/internal/scenario"
)

// tagging are the paths of vSphere's REST API for tags: govmomi's simulator has more.
var tagging = []string{"/com/vmware/cis/session", "/com/vmware/cis/tagging/"}

// serveTags serves sessions and tags over REST, which an ESXi host does not have.
func (s *Server) serveTags(service *simulator.Service) {
	if s.config.Scenario.Standalone {
		return
	}
	service.RegisterSDK(pbm.New()) // storage policies: Terraform's provider logs in there
	_, handler := vapi.New(service.Listen, s.registry)
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Authorization"), "SIGN ") {
			w.WriteHeader(http.StatusUnauthorized) // the simulator would admit anyone
			return
		}
		handler.ServeHTTP(w, r)
	})
	for _, path := range tagging {
		service.ServeMux.Handle(rest.Path+path, api)
	}
	service.ServeMux.Handle("POST /api", serveJSONRPC(api))
	service.ServeMux.Handle("POST /api/session", serveSession(api, http.StatusCreated))
	service.ServeMux.Handle("GET /api/session", serveSession(api, http.StatusOK))
	service.ServeMux.Handle("DELETE /api/session", serveSession(api, http.StatusNoContent))
}

// tagInventory gives the scenario's tags to its VMs, through the API itself.
func (s *Server) tagInventory() error {
	if len(s.config.Scenario.Tags) == 0 {
		return nil
	}
	ctx := context.Background()
	transport := soap.NewClient(s.model.Service.Listen, false)
	if err := transport.SetRootCAs(s.caFile); err != nil {
		return err
	}
	client := rest.NewClient(&vim25.Client{Client: transport})
	if err := client.Login(ctx, url.UserPassword(s.administrator(), s.config.Password)); err != nil {
		return err
	}
	defer client.Logout(ctx)
	manager, categories := tags.NewManager(client), map[string]string{}
	for _, tag := range s.config.Scenario.Tags {
		if err := s.tag(ctx, manager, categories, tag); err != nil {
			return fmt.Errorf("%s:%s: %w", tag.Category, tag.Name, err)
		}
	}
	return nil
}

// tag creates one tag, in a category that may already exist, and attaches it.
func (s *Server) tag(ctx context.Context, manager *tags.Manager, categories map[string]string, tag scenario.Tag) error {
	var err error
	if categories[tag.Category] == "" {
		made := &tags.Category{Name: tag.Category, Cardinality: "MULTIPLE"}
		if categories[tag.Category], err = manager.CreateCategory(ctx, made); err != nil {
			return err
		}
	}
	id, err := manager.CreateTag(ctx, &tags.Tag{Name: tag.Name, CategoryID: categories[tag.Category]})
	if err != nil {
		return err
	}
	named, err := s.named(tag.VMs)
	if err != nil || len(named) == 0 {
		return err
	}
	return manager.AttachTagToMultipleObjects(ctx, id, named)
}

// named finds VMs by name or, with a slash, by inventory path; the fleet's by name.
func (s *Server) named(wanted []string) ([]mo.Reference, error) {
	byName := map[string][]mo.Reference{}
	for _, entity := range s.registry.All("VirtualMachine") {
		name := entity.Entity().Name
		byName[name] = append(byName[name], entity.Reference())
	}
	for _, m := range s.order {
		byName[m.scenario.Path()] = []mo.Reference{m.Self}
	}
	var found []mo.Reference
	for _, name := range wanted {
		if byName[name] == nil {
			return nil, fmt.Errorf("no VM %s in this scenario", name)
		}
		found = append(found, byName[name]...)
	}
	return found, nil
}
