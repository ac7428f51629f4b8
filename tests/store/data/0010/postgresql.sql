CREATE FUNCTION public.sample_written_once() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'a sample is written once' USING ERRCODE = 'integrity_constraint_violation'; END $$;
CREATE FUNCTION public.vm_written_once() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'a baseline is written once' USING ERRCODE = 'integrity_constraint_violation'; END $$;
CREATE TABLE public.attempt (
    id integer NOT NULL,
    cell_id integer NOT NULL,
    number integer NOT NULL,
    token bigint NOT NULL,
    step text,
    step_at timestamp with time zone,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    outcome text,
    reason text,
    detail text,
    intended_json text,
    predicted_json text,
    effective_json text,
    change_json text,
    timings_json text,
    CONSTRAINT attempt_ended_ck CHECK (((outcome IS NULL) = (ended_at IS NULL))),
    CONSTRAINT attempt_outcome_ck CHECK ((outcome = ANY (ARRAY['valid'::text, 'invalid'::text, 'failed'::text, 'interrupted'::text]))),
    CONSTRAINT attempt_reason_ck CHECK (((outcome IS NULL) OR (outcome = 'valid'::text) OR (reason IS NOT NULL)))
);
CREATE SEQUENCE public.attempt_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.attempt_id_seq OWNED BY public.attempt.id;
CREATE TABLE public.audit (
    id integer NOT NULL,
    run_id integer,
    at timestamp with time zone NOT NULL,
    who text NOT NULL,
    vm_key text NOT NULL,
    vm text NOT NULL,
    action text NOT NULL,
    change_json text,
    detail text,
    ticket text
);
CREATE SEQUENCE public.audit_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.audit_id_seq OWNED BY public.audit.id;
CREATE TABLE public.cell (
    id integer NOT NULL,
    run_id integer NOT NULL,
    vm_id integer NOT NULL,
    arm text NOT NULL,
    label text NOT NULL,
    block integer NOT NULL,
    "position" integer NOT NULL,
    state text NOT NULL,
    reason text,
    CONSTRAINT cell_skipped_ck CHECK (((state = 'skipped'::text) = (reason IS NOT NULL))),
    CONSTRAINT cell_state_ck CHECK ((state = ANY (ARRAY['pending'::text, 'claimed'::text, 'valid'::text, 'failed'::text, 'skipped'::text])))
);
CREATE SEQUENCE public.cell_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.cell_id_seq OWNED BY public.cell.id;
CREATE TABLE public.estate_check (
    id integer NOT NULL,
    source text NOT NULL,
    kind text NOT NULL,
    read_at timestamp with time zone NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    product_version text NOT NULL,
    simulated text,
    vms integer NOT NULL
);
CREATE SEQUENCE public.estate_check_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.estate_check_id_seq OWNED BY public.estate_check.id;
CREATE TABLE public.estate_finding (
    id integer NOT NULL,
    source text NOT NULL,
    rule text NOT NULL,
    object_kind text NOT NULL,
    object_key text NOT NULL,
    object_name text NOT NULL,
    severity text NOT NULL,
    first_check_id integer NOT NULL,
    last_check_id integer NOT NULL,
    gone_check_id integer,
    CONSTRAINT estate_finding_severity_ck CHECK ((severity = ANY (ARRAY['block'::text, 'warn'::text, 'info'::text])))
);
CREATE SEQUENCE public.estate_finding_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.estate_finding_id_seq OWNED BY public.estate_finding.id;
CREATE TABLE public.fact (
    id integer NOT NULL,
    run_id integer NOT NULL,
    vm_id integer,
    attempt_id integer,
    scope text NOT NULL,
    key text NOT NULL,
    value_json text,
    at timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.fact_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.fact_id_seq OWNED BY public.fact.id;
CREATE TABLE public.lease (
    vm_key text NOT NULL,
    run_id integer,
    token bigint NOT NULL,
    holder text,
    taken_at timestamp with time zone,
    CONSTRAINT lease_holder_ck CHECK (((run_id IS NULL) = (holder IS NULL))),
    CONSTRAINT lease_taken_ck CHECK (((run_id IS NULL) = (taken_at IS NULL)))
);
CREATE TABLE public.run (
    id integer NOT NULL,
    study_id integer NOT NULL,
    name text NOT NULL,
    study_name text NOT NULL,
    number integer NOT NULL,
    seed bigint NOT NULL,
    state text NOT NULL,
    stop_requested text,
    simulated text,
    product_version text NOT NULL,
    driver_json text,
    inventory text,
    created_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    supervisor_pid integer,
    supervisor_host text,
    heartbeat_at timestamp with time zone,
    ticket text,
    CONSTRAINT run_state_ck CHECK ((state = ANY (ARRAY['planned'::text, 'running'::text, 'stopping'::text, 'stopped'::text, 'finished'::text, 'failed'::text, 'conflict'::text]))),
    CONSTRAINT run_stop_ck CHECK ((stop_requested = ANY (ARRAY['cell'::text, 'now'::text])))
);
CREATE SEQUENCE public.run_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.run_id_seq OWNED BY public.run.id;
CREATE TABLE public.sample (
    attempt_id integer NOT NULL,
    workload text NOT NULL,
    size bigint NOT NULL,
    form text NOT NULL,
    iteration integer NOT NULL,
    warmup boolean NOT NULL,
    outcome text NOT NULL,
    reason text,
    cpu_ms double precision,
    elapsed_ms double precision,
    parse_cpu_ms double precision,
    parse_elapsed_ms double precision,
    client_ms double precision,
    rows bigint,
    waits_json text,
    at timestamp with time zone NOT NULL,
    execution_json text,
    value double precision,
    figures_json text,
    CONSTRAINT sample_elapsed_ck CHECK ((elapsed_ms >= (0)::double precision)),
    CONSTRAINT sample_failed_ck CHECK (((outcome = 'failed'::text) = (reason IS NOT NULL))),
    CONSTRAINT sample_measured_ck CHECK (((outcome = 'measured'::text) = (elapsed_ms IS NOT NULL))),
    CONSTRAINT sample_outcome_ck CHECK ((outcome = ANY (ARRAY['measured'::text, 'failed'::text])))
);
CREATE TABLE public.schema_history (
    revision text NOT NULL,
    product_version text NOT NULL,
    applied_at timestamp with time zone NOT NULL
);
CREATE TABLE public.site (
    run_id integer NOT NULL,
    node text NOT NULL,
    supervisor_pid integer,
    supervisor_host text,
    heartbeat_at timestamp with time zone,
    end_json text
);
CREATE TABLE public.study (
    id integer NOT NULL,
    name text NOT NULL,
    yaml text NOT NULL,
    sha256 text NOT NULL
);
CREATE SEQUENCE public.study_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.study_id_seq OWNED BY public.study.id;
CREATE TABLE public.vm (
    id integer NOT NULL,
    run_id integer NOT NULL,
    vm_key text NOT NULL,
    name text NOT NULL,
    path text NOT NULL,
    esxi_host text NOT NULL,
    baseline_json text,
    baseline_at timestamp with time zone,
    restored_at timestamp with time zone,
    restore_outcome text,
    restore_detail_json text,
    node text,
    CONSTRAINT vm_baseline_ck CHECK (((baseline_json IS NULL) = (baseline_at IS NULL)))
);
CREATE SEQUENCE public.vm_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.vm_id_seq OWNED BY public.vm.id;
CREATE TABLE public.vnuma_schema_version (
    version_num character varying(32) NOT NULL
);
ALTER TABLE ONLY public.attempt ALTER COLUMN id SET DEFAULT nextval('public.attempt_id_seq'::regclass);
ALTER TABLE ONLY public.audit ALTER COLUMN id SET DEFAULT nextval('public.audit_id_seq'::regclass);
ALTER TABLE ONLY public.cell ALTER COLUMN id SET DEFAULT nextval('public.cell_id_seq'::regclass);
ALTER TABLE ONLY public.estate_check ALTER COLUMN id SET DEFAULT nextval('public.estate_check_id_seq'::regclass);
ALTER TABLE ONLY public.estate_finding ALTER COLUMN id SET DEFAULT nextval('public.estate_finding_id_seq'::regclass);
ALTER TABLE ONLY public.fact ALTER COLUMN id SET DEFAULT nextval('public.fact_id_seq'::regclass);
ALTER TABLE ONLY public.run ALTER COLUMN id SET DEFAULT nextval('public.run_id_seq'::regclass);
ALTER TABLE ONLY public.study ALTER COLUMN id SET DEFAULT nextval('public.study_id_seq'::regclass);
ALTER TABLE ONLY public.vm ALTER COLUMN id SET DEFAULT nextval('public.vm_id_seq'::regclass);
INSERT INTO public.attempt VALUES (1, 1, 1, 1, 'claim', '2026-11-20 12:00:46.381017+00', '2026-11-20 12:00:46.381017+00', '2026-11-20 12:00:46.411461+00', 'interrupted', 'interrupted', NULL, '{"topology":"2x8"}', NULL, NULL, NULL, NULL);
INSERT INTO public.attempt VALUES (2, 1, 2, 1, 'claim', '2026-11-20 12:00:46.427477+00', '2026-11-20 12:00:46.427477+00', '2026-11-20 12:00:46.440537+00', 'valid', NULL, NULL, '{"topology":"2x8"}', NULL, NULL, NULL, NULL);
INSERT INTO public.attempt VALUES (3, 2, 1, 1, 'claim', '2026-11-20 12:00:46.454033+00', '2026-11-20 12:00:46.454033+00', '2026-11-20 12:00:46.467659+00', 'failed', 'tools_timeout', NULL, '{"topology":"2x8"}', NULL, NULL, NULL, NULL);
INSERT INTO public.attempt VALUES (4, 2, 2, 1, 'claim', '2026-11-20 12:00:46.478555+00', '2026-11-20 12:00:46.478555+00', '2026-11-20 12:00:46.490069+00', 'invalid', 'topology_mismatch', NULL, '{"topology":"2x8"}', NULL, NULL, NULL, NULL);
INSERT INTO public.attempt VALUES (5, 3, 1, 1, 'claim', '2026-11-20 12:00:46.514128+00', '2026-11-20 12:00:46.514128+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.cell VALUES (4, 1, 1, 'arm3', 'arm3', 0, 3, 'pending', NULL);
INSERT INTO public.cell VALUES (1, 1, 1, 'arm0', 'arm0', 0, 0, 'valid', NULL);
INSERT INTO public.cell VALUES (2, 1, 1, 'arm1', 'arm1', 0, 1, 'skipped', 'failed_cell_limit');
INSERT INTO public.cell VALUES (3, 1, 1, 'arm2', 'arm2', 0, 2, 'claimed', NULL);
INSERT INTO public.fact VALUES (1, 1, NULL, NULL, 'product', 'lab', 'true', '2026-11-20 12:00:46.330371+00');
INSERT INTO public.fact VALUES (2, 1, 1, 5, 'guest', 'nodes', '[0,1]', '2026-11-20 12:00:46.527319+00');
INSERT INTO public.lease VALUES ('vc/1', 1, 1, 'ops@ctl1', '2026-11-20 12:00:46.350452+00');
INSERT INTO public.run VALUES (1, 1, 'quick.1', 'quick', 1, 7, 'running', NULL, 'paper', '0.1.0', '{"name":"FreeTDS","version":"1.3.17"}', 'inventories/lab', '2026-11-20 12:00:46.327519+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sample VALUES (1, 'cross_join', 2000, 'rows', 0, true, 'measured', NULL, 100, 200, NULL, NULL, 200.5, 4000000, '{"ASYNC_NETWORK_IO":0}', '2026-11-17 20:45:10.00025+00', NULL, NULL, NULL);
INSERT INTO public.sample VALUES (1, 'cross_join', 2000, 'rows', 1, false, 'measured', NULL, 101, 201, NULL, NULL, 201.5, 4000000, '{"ASYNC_NETWORK_IO":1}', '2026-11-17 20:45:11.00025+00', NULL, NULL, NULL);
INSERT INTO public.sample VALUES (2, 'cross_join', 2000, 'rows', 0, true, 'measured', NULL, 100, 200, NULL, NULL, 200.5, 4000000, '{"ASYNC_NETWORK_IO":0}', '2026-11-17 20:45:10.00025+00', NULL, NULL, NULL);
INSERT INTO public.sample VALUES (2, 'cross_join', 2000, 'rows', 1, false, 'measured', NULL, 101, 201, NULL, NULL, 201.5, 4000000, '{"ASYNC_NETWORK_IO":1}', '2026-11-17 20:45:11.00025+00', NULL, NULL, NULL);
INSERT INTO public.sample VALUES (2, 'cross_join', 2000, 'rows', 2, false, 'measured', NULL, 102, 202, NULL, NULL, 202.5, 4000000, '{"ASYNC_NETWORK_IO":2}', '2026-11-17 20:45:12.00025+00', NULL, NULL, NULL);
INSERT INTO public.sample VALUES (2, 'cross_join', 2000, 'rows', 3, false, 'measured', NULL, 103, 203, NULL, NULL, 203.5, 4000000, '{"ASYNC_NETWORK_IO":3}', '2026-11-17 20:45:13.00025+00', NULL, NULL, NULL);
INSERT INTO public.sample VALUES (5, 'cross_join', 500, 'rows', 1, false, 'failed', 'connection_dropped', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-17 20:45:10.00025+00', NULL, NULL, NULL);
INSERT INTO public.schema_history VALUES ('0001', '0.1.0', '2026-11-20 12:00:46.311703+00');
INSERT INTO public.schema_history VALUES ('0002', '0.1.0', '2026-11-20 14:29:30.506223+00');
INSERT INTO public.schema_history VALUES ('0003', '0.1.0', '2026-11-20 14:59:04.753595+00');
INSERT INTO public.schema_history VALUES ('0004', '0.1.0', '2026-11-21 10:12:09.118604+00');
INSERT INTO public.schema_history VALUES ('0005', '0.1.0', '2026-11-22 07:20:14.551902+00');
INSERT INTO public.schema_history VALUES ('0006', '0.1.0', '2026-11-23 03:55:37.779098+00');
INSERT INTO public.schema_history VALUES ('0007', '0.2.0', '2026-11-25 14:17:26.70306+00');
INSERT INTO public.schema_history VALUES ('0008', '0.2.0', '2026-11-25 18:37:23.339473+00');
INSERT INTO public.schema_history VALUES ('0009', '0.2.0', '2026-11-26 09:10:00+00');
INSERT INTO public.schema_history VALUES ('0010', '0.2.0', '2026-11-28 05:22:49.372337+00');
INSERT INTO public.site VALUES (1, 'site-b', NULL, NULL, NULL, '{"problems":[]}');
INSERT INTO public.study VALUES (1, 'quick', 'name: quick
blocks: 2
', '77a30721ad3e5bcbc9ed8b310629b0d8aeb00a50fb99c0e109d15515c3b6fac8');
INSERT INTO public.vm VALUES (1, 1, 'vc/1', 'sql16', '/DC/vm/sql16', 'esx01', '{"numCPUs":16}', '2026-11-20 12:00:46.352747+00', NULL, NULL, NULL, NULL);
INSERT INTO public.vnuma_schema_version VALUES ('0010');
SELECT pg_catalog.setval('public.attempt_id_seq', 5, true);
SELECT pg_catalog.setval('public.audit_id_seq', 1, false);
SELECT pg_catalog.setval('public.cell_id_seq', 4, true);
SELECT pg_catalog.setval('public.estate_check_id_seq', 1, false);
SELECT pg_catalog.setval('public.estate_finding_id_seq', 1, false);
SELECT pg_catalog.setval('public.fact_id_seq', 2, true);
SELECT pg_catalog.setval('public.run_id_seq', 1, true);
SELECT pg_catalog.setval('public.study_id_seq', 1, true);
SELECT pg_catalog.setval('public.vm_id_seq', 1, true);
ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_cell_id_number_uq UNIQUE (cell_id, number);
ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_pk PRIMARY KEY (id);
ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pk PRIMARY KEY (id);
ALTER TABLE ONLY public.cell
    ADD CONSTRAINT cell_pk PRIMARY KEY (id);
ALTER TABLE ONLY public.cell
    ADD CONSTRAINT cell_vm_id_block_label_uq UNIQUE (vm_id, block, label);
ALTER TABLE ONLY public.cell
    ADD CONSTRAINT cell_vm_id_position_uq UNIQUE (vm_id, "position");
ALTER TABLE ONLY public.estate_check
    ADD CONSTRAINT estate_check_pk PRIMARY KEY (id);
ALTER TABLE ONLY public.estate_check
    ADD CONSTRAINT estate_check_source_read_at_uq UNIQUE (source, read_at);
ALTER TABLE ONLY public.estate_finding
    ADD CONSTRAINT estate_finding_pk PRIMARY KEY (id);
ALTER TABLE ONLY public.fact
    ADD CONSTRAINT fact_pk PRIMARY KEY (id);
ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_pk PRIMARY KEY (vm_key);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_name_uq UNIQUE (name);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_pk PRIMARY KEY (id);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_study_name_number_uq UNIQUE (study_name, number);
ALTER TABLE ONLY public.sample
    ADD CONSTRAINT sample_pk PRIMARY KEY (attempt_id, workload, size, form, iteration, warmup);
ALTER TABLE ONLY public.schema_history
    ADD CONSTRAINT schema_history_pk PRIMARY KEY (revision);
ALTER TABLE ONLY public.site
    ADD CONSTRAINT site_pk PRIMARY KEY (run_id, node);
ALTER TABLE ONLY public.study
    ADD CONSTRAINT study_name_sha256_uq UNIQUE (name, sha256);
ALTER TABLE ONLY public.study
    ADD CONSTRAINT study_pk PRIMARY KEY (id);
ALTER TABLE ONLY public.vm
    ADD CONSTRAINT vm_pk PRIMARY KEY (id);
ALTER TABLE ONLY public.vm
    ADD CONSTRAINT vm_run_id_vm_key_uq UNIQUE (run_id, vm_key);
ALTER TABLE ONLY public.vnuma_schema_version
    ADD CONSTRAINT vnuma_schema_version_pkc PRIMARY KEY (version_num);
CREATE UNIQUE INDEX attempt_one_valid_per_cell ON public.attempt USING btree (cell_id) WHERE (outcome = 'valid'::text);
CREATE INDEX audit_run_id_ix ON public.audit USING btree (run_id);
CREATE UNIQUE INDEX cell_one_claimed_per_vm ON public.cell USING btree (vm_id) WHERE (state = 'claimed'::text);
CREATE INDEX cell_run_id_ix ON public.cell USING btree (run_id);
CREATE UNIQUE INDEX estate_finding_one_stands ON public.estate_finding USING btree (source, rule, object_kind, object_key) WHERE (gone_check_id IS NULL);
CREATE INDEX estate_finding_source_ix ON public.estate_finding USING btree (source);
CREATE INDEX fact_run_scope_ix ON public.fact USING btree (run_id, scope);
CREATE INDEX fact_vm_scope_ix ON public.fact USING btree (vm_id, scope);
CREATE INDEX vm_esxi_host_ix ON public.vm USING btree (esxi_host);
CREATE TRIGGER sample_written_once BEFORE UPDATE ON public.sample FOR EACH ROW WHEN (true) EXECUTE FUNCTION public.sample_written_once();
CREATE TRIGGER vm_written_once BEFORE UPDATE OF baseline_json, baseline_at ON public.vm FOR EACH ROW WHEN ((old.baseline_json IS NOT NULL)) EXECUTE FUNCTION public.vm_written_once();
ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_cell_id_fk FOREIGN KEY (cell_id) REFERENCES public.cell(id);
ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_run_id_fk FOREIGN KEY (run_id) REFERENCES public.run(id);
ALTER TABLE ONLY public.cell
    ADD CONSTRAINT cell_run_id_fk FOREIGN KEY (run_id) REFERENCES public.run(id);
ALTER TABLE ONLY public.cell
    ADD CONSTRAINT cell_vm_id_fk FOREIGN KEY (vm_id) REFERENCES public.vm(id);
ALTER TABLE ONLY public.estate_finding
    ADD CONSTRAINT estate_finding_first_check_id_fk FOREIGN KEY (first_check_id) REFERENCES public.estate_check(id);
ALTER TABLE ONLY public.estate_finding
    ADD CONSTRAINT estate_finding_gone_check_id_fk FOREIGN KEY (gone_check_id) REFERENCES public.estate_check(id);
ALTER TABLE ONLY public.estate_finding
    ADD CONSTRAINT estate_finding_last_check_id_fk FOREIGN KEY (last_check_id) REFERENCES public.estate_check(id);
ALTER TABLE ONLY public.fact
    ADD CONSTRAINT fact_attempt_id_fk FOREIGN KEY (attempt_id) REFERENCES public.attempt(id);
ALTER TABLE ONLY public.fact
    ADD CONSTRAINT fact_run_id_fk FOREIGN KEY (run_id) REFERENCES public.run(id);
ALTER TABLE ONLY public.fact
    ADD CONSTRAINT fact_vm_id_fk FOREIGN KEY (vm_id) REFERENCES public.vm(id);
ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_run_id_fk FOREIGN KEY (run_id) REFERENCES public.run(id);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_study_id_fk FOREIGN KEY (study_id) REFERENCES public.study(id);
ALTER TABLE ONLY public.sample
    ADD CONSTRAINT sample_attempt_id_fk FOREIGN KEY (attempt_id) REFERENCES public.attempt(id);
ALTER TABLE ONLY public.site
    ADD CONSTRAINT site_run_id_fk FOREIGN KEY (run_id) REFERENCES public.run(id);
ALTER TABLE ONLY public.vm
    ADD CONSTRAINT vm_run_id_fk FOREIGN KEY (run_id) REFERENCES public.run(id);
