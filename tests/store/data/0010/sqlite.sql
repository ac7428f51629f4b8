BEGIN TRANSACTION;
CREATE TABLE attempt (
	id INTEGER NOT NULL, 
	cell_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	token BIGINT NOT NULL, 
	step TEXT, 
	step_at TEXT, 
	started_at TEXT NOT NULL, 
	ended_at TEXT, 
	outcome TEXT, 
	reason TEXT, 
	detail TEXT, 
	intended_json TEXT, 
	predicted_json TEXT, 
	effective_json TEXT, 
	change_json TEXT, 
	timings_json TEXT, 
	CONSTRAINT attempt_pk PRIMARY KEY (id), 
	CONSTRAINT attempt_cell_id_fk FOREIGN KEY(cell_id) REFERENCES cell (id), 
	CONSTRAINT attempt_cell_id_number_uq UNIQUE (cell_id, number), 
	CONSTRAINT attempt_outcome_ck CHECK (outcome IN ('valid','invalid','failed','interrupted')), 
	CONSTRAINT attempt_ended_ck CHECK ((outcome IS NULL) = (ended_at IS NULL)), 
	CONSTRAINT attempt_reason_ck CHECK (outcome IS NULL OR outcome = 'valid' OR reason IS NOT NULL)
);
INSERT INTO "attempt" VALUES(1,1,1,1,'claim','2026-11-20T12:00:43.382603Z','2026-11-20T12:00:43.382603Z','2026-11-20T12:00:43.405963Z','interrupted','interrupted',NULL,'{"topology":"2x8"}',NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(2,1,2,1,'claim','2026-11-20T12:00:43.420680Z','2026-11-20T12:00:43.420680Z','2026-11-20T12:00:43.450383Z','valid',NULL,NULL,'{"topology":"2x8"}',NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(3,2,1,1,'claim','2026-11-20T12:00:43.468912Z','2026-11-20T12:00:43.468912Z','2026-11-20T12:00:43.493464Z','failed','tools_timeout',NULL,'{"topology":"2x8"}',NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(4,2,2,1,'claim','2026-11-20T12:00:43.511923Z','2026-11-20T12:00:43.511923Z','2026-11-20T12:00:43.535993Z','invalid','topology_mismatch',NULL,'{"topology":"2x8"}',NULL,NULL,NULL,NULL);
INSERT INTO "attempt" VALUES(5,3,1,1,'claim','2026-11-20T12:00:43.572468Z','2026-11-20T12:00:43.572468Z',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	run_id INTEGER, 
	at TEXT NOT NULL, 
	who TEXT NOT NULL, 
	vm_key TEXT NOT NULL, 
	vm TEXT NOT NULL, 
	action TEXT NOT NULL, 
	change_json TEXT, 
	detail TEXT, 
	ticket TEXT, 
	CONSTRAINT audit_pk PRIMARY KEY (id), 
	CONSTRAINT audit_run_id_fk FOREIGN KEY(run_id) REFERENCES run (id)
);
CREATE TABLE cell (
	id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	vm_id INTEGER NOT NULL, 
	arm TEXT NOT NULL, 
	label TEXT NOT NULL, 
	block INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT, 
	CONSTRAINT cell_pk PRIMARY KEY (id), 
	CONSTRAINT cell_run_id_fk FOREIGN KEY(run_id) REFERENCES run (id), 
	CONSTRAINT cell_vm_id_fk FOREIGN KEY(vm_id) REFERENCES vm (id), 
	CONSTRAINT cell_vm_id_block_label_uq UNIQUE (vm_id, block, label), 
	CONSTRAINT cell_vm_id_position_uq UNIQUE (vm_id, position), 
	CONSTRAINT cell_state_ck CHECK (state IN ('pending','claimed','valid','failed','skipped')), 
	CONSTRAINT cell_skipped_ck CHECK ((state = 'skipped') = (reason IS NOT NULL))
);
INSERT INTO "cell" VALUES(1,1,1,'arm0','arm0',0,0,'valid',NULL);
INSERT INTO "cell" VALUES(2,1,1,'arm1','arm1',0,1,'skipped','failed_cell_limit');
INSERT INTO "cell" VALUES(3,1,1,'arm2','arm2',0,2,'claimed',NULL);
INSERT INTO "cell" VALUES(4,1,1,'arm3','arm3',0,3,'pending',NULL);
CREATE TABLE estate_check (
	id INTEGER NOT NULL, 
	source TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	read_at TEXT NOT NULL, 
	recorded_at TEXT NOT NULL, 
	product_version TEXT NOT NULL, 
	simulated TEXT, 
	vms INTEGER NOT NULL, 
	CONSTRAINT estate_check_pk PRIMARY KEY (id), 
	CONSTRAINT estate_check_source_read_at_uq UNIQUE (source, read_at)
);
CREATE TABLE estate_finding (
	id INTEGER NOT NULL, 
	source TEXT NOT NULL, 
	rule TEXT NOT NULL, 
	object_kind TEXT NOT NULL, 
	object_key TEXT NOT NULL, 
	object_name TEXT NOT NULL, 
	severity TEXT NOT NULL, 
	first_check_id INTEGER NOT NULL, 
	last_check_id INTEGER NOT NULL, 
	gone_check_id INTEGER, 
	CONSTRAINT estate_finding_pk PRIMARY KEY (id), 
	CONSTRAINT estate_finding_first_check_id_fk FOREIGN KEY(first_check_id) REFERENCES estate_check (id), 
	CONSTRAINT estate_finding_last_check_id_fk FOREIGN KEY(last_check_id) REFERENCES estate_check (id), 
	CONSTRAINT estate_finding_gone_check_id_fk FOREIGN KEY(gone_check_id) REFERENCES estate_check (id), 
	CONSTRAINT estate_finding_severity_ck CHECK (severity IN ('block','warn','info'))
);
CREATE TABLE fact (
	id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	vm_id INTEGER, 
	attempt_id INTEGER, 
	scope TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	value_json TEXT, 
	at TEXT NOT NULL, 
	CONSTRAINT fact_pk PRIMARY KEY (id), 
	CONSTRAINT fact_run_id_fk FOREIGN KEY(run_id) REFERENCES run (id), 
	CONSTRAINT fact_vm_id_fk FOREIGN KEY(vm_id) REFERENCES vm (id), 
	CONSTRAINT fact_attempt_id_fk FOREIGN KEY(attempt_id) REFERENCES attempt (id)
);
INSERT INTO "fact" VALUES(1,1,NULL,NULL,'product','lab','true','2026-11-20T12:00:43.331103Z');
INSERT INTO "fact" VALUES(2,1,1,5,'guest','nodes','[0,1]','2026-11-20T12:00:43.608340Z');
CREATE TABLE lease (
	vm_key TEXT NOT NULL, 
	run_id INTEGER, 
	token BIGINT NOT NULL, 
	holder TEXT, 
	taken_at TEXT, 
	CONSTRAINT lease_pk PRIMARY KEY (vm_key), 
	CONSTRAINT lease_run_id_fk FOREIGN KEY(run_id) REFERENCES run (id), 
	CONSTRAINT lease_holder_ck CHECK ((run_id IS NULL) = (holder IS NULL)), 
	CONSTRAINT lease_taken_ck CHECK ((run_id IS NULL) = (taken_at IS NULL))
);
INSERT INTO "lease" VALUES('vc/1',1,1,'ops@ctl1','2026-11-20T12:00:43.349141Z');
CREATE TABLE run (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	study_name TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	seed BIGINT NOT NULL, 
	state TEXT NOT NULL, 
	stop_requested TEXT, 
	simulated TEXT, 
	product_version TEXT NOT NULL, 
	driver_json TEXT, 
	inventory TEXT, 
	created_at TEXT NOT NULL, 
	finished_at TEXT, 
	supervisor_pid INTEGER, 
	supervisor_host TEXT, 
	heartbeat_at TEXT, ticket TEXT, 
	CONSTRAINT run_pk PRIMARY KEY (id), 
	CONSTRAINT run_study_id_fk FOREIGN KEY(study_id) REFERENCES study (id), 
	CONSTRAINT run_name_uq UNIQUE (name), 
	CONSTRAINT run_study_name_number_uq UNIQUE (study_name, number), 
	CONSTRAINT run_state_ck CHECK (state IN ('planned','running','stopping','stopped','finished','failed','conflict')), 
	CONSTRAINT run_stop_ck CHECK (stop_requested IN ('cell','now'))
);
INSERT INTO "run" VALUES(1,1,'quick.1','quick',1,7,'running',NULL,'paper','0.1.0','{"name":"FreeTDS","version":"1.3.17"}','inventories/lab','2026-11-20T12:00:43.324873Z',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE sample (
	attempt_id INTEGER NOT NULL, 
	workload TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	form TEXT NOT NULL, 
	iteration INTEGER NOT NULL, 
	warmup BOOLEAN NOT NULL, 
	outcome TEXT NOT NULL, 
	reason TEXT, 
	cpu_ms DOUBLE, 
	elapsed_ms DOUBLE, 
	parse_cpu_ms DOUBLE, 
	parse_elapsed_ms DOUBLE, 
	client_ms DOUBLE, 
	rows BIGINT, 
	waits_json TEXT, 
	at TEXT NOT NULL, execution_json TEXT, value DOUBLE, figures_json TEXT, 
	CONSTRAINT sample_pk PRIMARY KEY (attempt_id, workload, size, form, iteration, warmup), 
	CONSTRAINT sample_attempt_id_fk FOREIGN KEY(attempt_id) REFERENCES attempt (id), 
	CONSTRAINT sample_outcome_ck CHECK (outcome IN ('measured','failed')), 
	CONSTRAINT sample_measured_ck CHECK ((outcome = 'measured') = (elapsed_ms IS NOT NULL)), 
	CONSTRAINT sample_failed_ck CHECK ((outcome = 'failed') = (reason IS NOT NULL)), 
	CONSTRAINT sample_elapsed_ck CHECK (elapsed_ms >= 0)
);
INSERT INTO "sample" VALUES(1,'cross_join',2000,'rows',0,1,'measured',NULL,100.0,200.0,NULL,NULL,200.5,4000000,'{"ASYNC_NETWORK_IO":0}','2026-11-17T20:45:10.000250Z',NULL,NULL,NULL);
INSERT INTO "sample" VALUES(1,'cross_join',2000,'rows',1,0,'measured',NULL,101.0,201.0,NULL,NULL,201.5,4000000,'{"ASYNC_NETWORK_IO":1}','2026-11-17T20:45:11.000250Z',NULL,NULL,NULL);
INSERT INTO "sample" VALUES(2,'cross_join',2000,'rows',0,1,'measured',NULL,100.0,200.0,NULL,NULL,200.5,4000000,'{"ASYNC_NETWORK_IO":0}','2026-11-17T20:45:10.000250Z',NULL,NULL,NULL);
INSERT INTO "sample" VALUES(2,'cross_join',2000,'rows',1,0,'measured',NULL,101.0,201.0,NULL,NULL,201.5,4000000,'{"ASYNC_NETWORK_IO":1}','2026-11-17T20:45:11.000250Z',NULL,NULL,NULL);
INSERT INTO "sample" VALUES(2,'cross_join',2000,'rows',2,0,'measured',NULL,102.0,202.0,NULL,NULL,202.5,4000000,'{"ASYNC_NETWORK_IO":2}','2026-11-17T20:45:12.000250Z',NULL,NULL,NULL);
INSERT INTO "sample" VALUES(2,'cross_join',2000,'rows',3,0,'measured',NULL,103.0,203.0,NULL,NULL,203.5,4000000,'{"ASYNC_NETWORK_IO":3}','2026-11-17T20:45:13.000250Z',NULL,NULL,NULL);
INSERT INTO "sample" VALUES(5,'cross_join',500,'rows',1,0,'failed','connection_dropped',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-17T20:45:10.000250Z',NULL,NULL,NULL);
CREATE TABLE schema_history (
	revision TEXT NOT NULL, 
	product_version TEXT NOT NULL, 
	applied_at TEXT NOT NULL, 
	CONSTRAINT schema_history_pk PRIMARY KEY (revision)
);
INSERT INTO "schema_history" VALUES('0001','0.1.0','2026-11-20T12:00:43.300271Z');
INSERT INTO "schema_history" VALUES('0002','0.1.0','2026-11-20T14:29:29.806860Z');
INSERT INTO "schema_history" VALUES('0003','0.1.0','2026-11-20T14:59:02.661083Z');
INSERT INTO "schema_history" VALUES('0004','0.1.0','2026-11-21T10:12:07.410233Z');
INSERT INTO "schema_history" VALUES('0005','0.1.0','2026-11-22T07:20:12.773015Z');
INSERT INTO "schema_history" VALUES('0006','0.1.0','2026-11-23T03:55:36.022182Z');
INSERT INTO "schema_history" VALUES('0007','0.2.0','2026-11-25T14:17:25.663927Z');
INSERT INTO "schema_history" VALUES('0008','0.2.0','2026-11-25T18:37:23.698964Z');
INSERT INTO "schema_history" VALUES('0009','0.2.0','2026-11-26T09:10:00.000000Z');
INSERT INTO "schema_history" VALUES('0010','0.2.0','2026-11-28T05:22:49.289830Z');
CREATE TABLE "site" (
	run_id INTEGER NOT NULL, 
	node TEXT NOT NULL, 
	supervisor_pid INTEGER, 
	supervisor_host TEXT, 
	heartbeat_at TEXT, 
	end_json TEXT, 
	CONSTRAINT site_pk PRIMARY KEY (run_id, node), 
	CONSTRAINT site_run_id_fk FOREIGN KEY(run_id) REFERENCES run (id)
);
INSERT INTO "site" VALUES(1,'site-b',NULL,NULL,NULL,'{"problems":[]}');
CREATE TABLE study (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	yaml TEXT NOT NULL, 
	sha256 TEXT NOT NULL, 
	CONSTRAINT study_pk PRIMARY KEY (id), 
	CONSTRAINT study_name_sha256_uq UNIQUE (name, sha256)
);
INSERT INTO "study" VALUES(1,'quick','name: quick
blocks: 2
','77a30721ad3e5bcbc9ed8b310629b0d8aeb00a50fb99c0e109d15515c3b6fac8');
CREATE TABLE vm (
	id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	vm_key TEXT NOT NULL, 
	name TEXT NOT NULL, 
	path TEXT NOT NULL, 
	esxi_host TEXT NOT NULL, 
	baseline_json TEXT, 
	baseline_at TEXT, 
	restored_at TEXT, 
	restore_outcome TEXT, 
	restore_detail_json TEXT, node TEXT, 
	CONSTRAINT vm_pk PRIMARY KEY (id), 
	CONSTRAINT vm_run_id_fk FOREIGN KEY(run_id) REFERENCES run (id), 
	CONSTRAINT vm_run_id_vm_key_uq UNIQUE (run_id, vm_key), 
	CONSTRAINT vm_baseline_ck CHECK ((baseline_json IS NULL) = (baseline_at IS NULL))
);
INSERT INTO "vm" VALUES(1,1,'vc/1','sql16','/DC/vm/sql16','esx01','{"numCPUs":16}','2026-11-20T12:00:43.350600Z',NULL,NULL,NULL,NULL);
CREATE TABLE vnuma_schema_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT vnuma_schema_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "vnuma_schema_version" VALUES('0010');
CREATE INDEX vm_esxi_host_ix ON vm (esxi_host);
CREATE INDEX cell_run_id_ix ON cell (run_id);
CREATE UNIQUE INDEX cell_one_claimed_per_vm ON cell (vm_id) WHERE state = 'claimed';
CREATE UNIQUE INDEX attempt_one_valid_per_cell ON attempt (cell_id) WHERE outcome = 'valid';
CREATE INDEX fact_run_scope_ix ON fact (run_id, scope);
CREATE INDEX fact_vm_scope_ix ON fact (vm_id, scope);
CREATE TRIGGER vm_written_once BEFORE UPDATE OF baseline_json, baseline_at ON vm WHEN OLD.baseline_json IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a baseline is written once'); END;
CREATE TRIGGER sample_written_once BEFORE UPDATE ON sample WHEN true
BEGIN SELECT RAISE(ABORT, 'a sample is written once'); END;
CREATE INDEX audit_run_id_ix ON audit (run_id);
CREATE INDEX estate_finding_source_ix ON estate_finding (source);
CREATE UNIQUE INDEX estate_finding_one_stands ON estate_finding (source, rule, object_kind, object_key) WHERE gone_check_id IS NULL;
COMMIT;
