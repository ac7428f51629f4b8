-- The statements that the product sends, one batch per GO, with @P1 and @P2 as parameters.
-- Names, numbers and the n of TOP vary; study and source databases are examples.

-- ============ 1. readiness (connection to master) =====================================================
-- uptime, immune to corrections of the guest's clock; both bigint ms columns; cpu times of the SQL process
SELECT ms_ticks, sqlserver_start_time_ms_ticks, process_kernel_time_ms, process_user_time_ms, cpu_count FROM sys.dm_os_sys_info
GO
SELECT state_desc FROM sys.databases WHERE name = @P1
GO
-- quiet guest, the whole guest's CPU: one record a minute on a real server; may be empty. record is nvarchar XML:
-- <Record id="7" type="RING_BUFFER_SCHEDULER_MONITOR" time="123456"><SchedulerMonitorEvent><SystemHealth>
--   <ProcessUtilization>0</ProcessUtilization><SystemIdle>98</SystemIdle>...</SystemHealth></SchedulerMonitorEvent></Record>
-- timestamp is bigint on the scale of ms_ticks
SELECT TOP (1) timestamp, record FROM sys.dm_os_ring_buffers WHERE ring_buffer_type = N'RING_BUFFER_SCHEDULER_MONITOR' AND record LIKE N'%<SystemHealth>%' ORDER BY timestamp DESC
GO

-- ============ 2. facts of the server (master) =========================================================
SELECT CAST(SERVERPROPERTY(N'ProductVersion') AS nvarchar(128)) AS product_version,
       CAST(SERVERPROPERTY(N'ProductLevel') AS nvarchar(128)) AS product_level,
       CAST(SERVERPROPERTY(N'ProductUpdateLevel') AS nvarchar(128)) AS product_update_level,
       CAST(SERVERPROPERTY(N'Edition') AS nvarchar(128)) AS edition,
       CAST(SERVERPROPERTY(N'EngineEdition') AS int) AS engine_edition,
       CAST(SERVERPROPERTY(N'Collation') AS nvarchar(128)) AS collation,
       CAST(SERVERPROPERTY(N'IsXTPSupported') AS int) AS is_xtp_supported,
       CAST(SERVERPROPERTY(N'IsHadrEnabled') AS int) AS is_hadr_enabled,
       CAST(SERVERPROPERTY(N'IsClustered') AS int) AS is_clustered,
       CAST(SERVERPROPERTY(N'InstanceDefaultDataPath') AS nvarchar(260)) AS data_path,
       @@VERSION AS version_text
GO
-- which columns this version has (also for sys.dm_os_memory_nodes); name is sysname
SELECT name FROM sys.all_columns WHERE object_id = OBJECT_ID(N'sys.dm_os_sys_info')
GO
SELECT name FROM sys.all_columns WHERE object_id = OBJECT_ID(N'sys.dm_os_memory_nodes')
GO
-- those of the following that exist, in this order; *_desc are nvarchar(60)
SELECT cpu_count, scheduler_count, max_workers_count, physical_memory_kb, committed_kb, committed_target_kb, ms_ticks, sqlserver_start_time_ms_ticks, sqlserver_start_time, affinity_type_desc, virtual_machine_type_desc, socket_count, cores_per_socket, numa_node_count, softnuma_configuration_desc, sql_memory_model_desc FROM sys.dm_os_sys_info
GO
-- DAC's node is filtered by its documented state, e.g. N'ONLINE DAC'
SELECT node_id, memory_node_id, online_scheduler_count, node_state_desc FROM sys.dm_os_nodes WHERE node_state_desc NOT LIKE N'%DAC%' ORDER BY node_id
GO
-- has a row 64 for the DAC too
SELECT memory_node_id, pages_kb, foreign_committed_kb FROM sys.dm_os_memory_nodes ORDER BY memory_node_id
GO
SELECT status, COUNT(*) AS schedulers FROM sys.dm_os_schedulers WHERE status IN (N'VISIBLE ONLINE', N'VISIBLE OFFLINE') GROUP BY status
GO
-- where the memory-optimised pages lie
SELECT memory_node_id, SUM(pages_kb) AS pages_kb FROM sys.dm_os_memory_clerks WHERE type = N'MEMORYCLERK_XTP' GROUP BY memory_node_id
GO
SELECT name, CAST(value_in_use AS bigint) AS value_in_use FROM sys.configurations WHERE name IN (N'max degree of parallelism', N'cost threshold for parallelism', N'max server memory (MB)', N'min server memory (MB)', N'lightweight pooling')
GO
-- TraceFlag smallint, Status smallint, Global smallint, Session smallint; no result set at all when none is on
DBCC TRACESTATUS (-1) WITH NO_INFOMSGS
GO
-- NULL for a permission name that this version does not know (2019 and older: VIEW SERVER PERFORMANCE STATE)
SELECT HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW SERVER STATE') AS view_server_state,
       HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW SERVER PERFORMANCE STATE') AS view_server_performance_state,
       HAS_PERMS_BY_NAME(NULL, NULL, N'CREATE ANY DATABASE') AS create_any_database,
       IS_SRVROLEMEMBER(N'sysadmin') AS is_sysadmin
GO
SELECT COUNT(*) AS sessions FROM sys.dm_exec_sessions WHERE is_user_process = 1 AND session_id <> @@SPID AND (program_name IS NULL OR program_name <> N'vnuma')
GO

-- ============ 3. dataset ==============================================================================
-- connection to master
SELECT DB_ID(@P1) AS database_id
GO
-- is it ours? NULL = no such table = not ours = refused
SELECT OBJECT_ID(N'[vnuma_study].dbo.vnuma_marker', N'U') AS marker
GO
CREATE DATABASE [vnuma_study]
GO
ALTER DATABASE [vnuma_study] SET RECOVERY SIMPLE
GO
-- major version >= 13 only
ALTER DATABASE [vnuma_study] SET QUERY_STORE = OFF
GO
USE [vnuma_study]
GO
CREATE TABLE dbo.vnuma_marker (item nvarchar(100) NOT NULL PRIMARY KEY, value nvarchar(400) NOT NULL)
GO
INSERT INTO dbo.vnuma_marker (item, value) VALUES (@P1, @P2)
GO
SELECT item, value FROM dbo.vnuma_marker
GO
DELETE FROM dbo.vnuma_marker WHERE item <> N'product'
GO
SELECT COUNT(*) AS filegroups FROM sys.filegroups WHERE type = N'FX'
GO
ALTER DATABASE [vnuma_study] ADD FILEGROUP vnuma_xtp CONTAINS MEMORY_OPTIMIZED_DATA
GO
SELECT COUNT(*) AS files FROM sys.database_files WHERE type = 2
GO
ALTER DATABASE [vnuma_study] ADD FILE (NAME = N'vnuma_xtp', FILENAME = N'C:\Program Files\Microsoft SQL Server\MSSQL15.MSSQLSERVER\MSSQL\DATA\vnuma_study_xtp') TO FILEGROUP vnuma_xtp
GO
SELECT SCHEMA_ID(N'Production') AS schema_id
GO
CREATE SCHEMA Production
GO
SELECT SCHEMA_ID(N'Sales') AS schema_id
GO
CREATE SCHEMA Sales
GO
SELECT OBJECT_ID(N'Production.TransactionHistory', N'U') AS object_id
GO
DROP TABLE Production.TransactionHistory
GO
SELECT OBJECT_ID(N'Sales.SalesOrderDetail', N'U') AS object_id
GO
DROP TABLE Sales.SalesOrderDetail
GO
-- DURABILITY is SCHEMA_AND_DATA or SCHEMA_ONLY (rows of the latter are gone after every start of the server)
CREATE TABLE Production.TransactionHistory (
    TransactionID int NOT NULL PRIMARY KEY NONCLUSTERED,
    ProductID int NOT NULL,
    ReferenceOrderID int NOT NULL,
    ReferenceOrderLineID int NOT NULL,
    TransactionDate datetime NOT NULL,
    TransactionType nchar(1) NOT NULL,
    Quantity int NOT NULL,
    ActualCost money NOT NULL,
    ModifiedDate datetime NOT NULL
) WITH (MEMORY_OPTIMIZED = ON, DURABILITY = SCHEMA_AND_DATA)
GO
CREATE TABLE Sales.SalesOrderDetail (
    SalesOrderID int NOT NULL,
    SalesOrderDetailID int NOT NULL,
    CarrierTrackingNumber nvarchar(25) NULL,
    OrderQty smallint NOT NULL,
    ProductID int NOT NULL,
    SpecialOfferID int NOT NULL,
    UnitPrice money NOT NULL,
    UnitPriceDiscount money NOT NULL,
    LineTotal numeric(38, 6) NOT NULL,
    rowguid uniqueidentifier NOT NULL,
    ModifiedDate datetime NOT NULL,
    PRIMARY KEY NONCLUSTERED (SalesOrderID, SalesOrderDetailID)
) WITH (MEMORY_OPTIMIZED = ON, DURABILITY = SCHEMA_AND_DATA)
GO
-- generated rows, in chunks of 100,000: the offset (0, 100000, 200000 ...) and the last bound (113443) vary.
-- / and % are integer division and modulo of ints.
WITH digit (d) AS (SELECT v.d FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS v (d)),
     number (n) AS (SELECT 0 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d FROM digit AS a CROSS JOIN digit AS b CROSS JOIN digit AS c CROSS JOIN digit AS e CROSS JOIN digit AS f)
INSERT INTO Production.TransactionHistory (TransactionID, ProductID, ReferenceOrderID, ReferenceOrderLineID, TransactionDate, TransactionType, Quantity, ActualCost, ModifiedDate)
SELECT 100000 + n, 316 + n % 684, 41590 + n / 3, n % 3, DATEADD(day, n % 369, CAST('20130731' AS datetime)), CASE WHEN n % 15 = 0 THEN N'P' WHEN n % 3 = 0 THEN N'W' ELSE N'S' END, 1 + n % 9, CAST(n * 37 % 350000 AS money) / 100, DATEADD(day, n % 369, CAST('20130731' AS datetime))
FROM number WHERE n < 113443
GO
WITH digit (d) AS (SELECT v.d FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS v (d)),
     number (n) AS (SELECT 0 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d FROM digit AS a CROSS JOIN digit AS b CROSS JOIN digit AS c CROSS JOIN digit AS e CROSS JOIN digit AS f)
INSERT INTO Sales.SalesOrderDetail (SalesOrderID, SalesOrderDetailID, CarrierTrackingNumber, OrderQty, ProductID, SpecialOfferID, UnitPrice, UnitPriceDiscount, LineTotal, rowguid, ModifiedDate)
SELECT 43659 + n / 4, 1 + n, CASE WHEN n / 4 % 2 = 0 THEN N'4911-' + RIGHT(N'000' + CAST(n / 4 % 1000 AS nvarchar(10)), 3) + N'C-' + RIGHT(N'00' + CAST(n / 4 % 97 AS nvarchar(10)), 2) ELSE NULL END, CAST(1 + n % 6 AS smallint), 707 + n % 292, 1 + n % 16, CAST(100 + n * 37 % 350000 AS money) / 100, CAST(0 AS money), CAST(CAST(100 + n * 37 % 350000 AS money) / 100 * (1 + n % 6) AS numeric(38, 6)), CAST(CAST(n AS binary(16)) AS uniqueidentifier), DATEADD(day, n / 4 % 1127, CAST('20110531' AS datetime))
FROM number WHERE n < 121317
GO
-- copy from an existing AdventureWorks: two steps, because of 41317. Current database: ours.
SELECT OBJECT_ID(N'[AdventureWorks2019].Production.TransactionHistory', N'U') AS object_id
GO
SELECT COUNT_BIG(*) AS row_count FROM [AdventureWorks2019].Production.TransactionHistory
GO
SELECT OBJECT_ID(N'dbo.vnuma_staging', N'U') AS object_id
GO
DROP TABLE dbo.vnuma_staging
GO
SELECT TransactionID, ProductID, ReferenceOrderID, ReferenceOrderLineID, TransactionDate, TransactionType, Quantity, ActualCost, ModifiedDate INTO dbo.vnuma_staging FROM [AdventureWorks2019].Production.TransactionHistory
GO
INSERT INTO Production.TransactionHistory (TransactionID, ProductID, ReferenceOrderID, ReferenceOrderLineID, TransactionDate, TransactionType, Quantity, ActualCost, ModifiedDate)
SELECT TransactionID, ProductID, ReferenceOrderID, ReferenceOrderLineID, TransactionDate, TransactionType, Quantity, ActualCost, ModifiedDate FROM dbo.vnuma_staging
GO
-- the same six for Sales.SalesOrderDetail with its eleven columns. Must be answered 41317, were it ever sent in one step.
SELECT COUNT_BIG(*) AS row_count, SUM(CAST(BINARY_CHECKSUM(TransactionID, ProductID, ReferenceOrderID, ReferenceOrderLineID, TransactionDate, TransactionType, Quantity, ActualCost, ModifiedDate) AS bigint)) AS row_checksum FROM Production.TransactionHistory
GO
SELECT COUNT_BIG(*) AS row_count, SUM(CAST(BINARY_CHECKSUM(SalesOrderID, SalesOrderDetailID, CarrierTrackingNumber, OrderQty, ProductID, SpecialOfferID, UnitPrice, UnitPriceDiscount, LineTotal, rowguid, ModifiedDate) AS bigint)) AS row_checksum FROM Sales.SalesOrderDetail
GO
-- durability and memory-optimised really are what was asked for
SELECT is_memory_optimized, durability_desc FROM sys.tables WHERE object_id = OBJECT_ID(N'Production.TransactionHistory', N'U')
GO
-- drop (after the marker was seen), current database master
USE [master]
GO
ALTER DATABASE [vnuma_study] SET SINGLE_USER WITH ROLLBACK IMMEDIATE
GO
DROP DATABASE [vnuma_study]
GO

-- ============ 4. measuring (connection to vnuma_study) ================================================
SET STATISTICS TIME ON
GO
SET STATISTICS TIME OFF
GO
-- after each timed batch, with nothing in between; its own 3613/3612 are read away
SELECT @@ERROR AS error_number, ROWCOUNT_BIG() AS row_count
GO
SELECT wait_type, waiting_tasks_count, wait_time_ms, signal_wait_time_ms FROM sys.dm_exec_session_wait_stats WHERE session_id = @@SPID
GO
-- client form (the paper's): 20 columns, n x n rows
SELECT a.*, b.*
FROM (SELECT TOP (500) * FROM Production.TransactionHistory ORDER BY TransactionID) AS a
CROSS JOIN (SELECT TOP (500) * FROM Sales.SalesOrderDetail ORDER BY SalesOrderID, SalesOrderDetailID) AS b
OPTION (MAXDOP 1)
GO
-- server form: one row; joined_rows must be n x n
SELECT COUNT_BIG(*) AS joined_rows, SUM(CAST(CHECKSUM(a.TransactionID, b.SalesOrderDetailID) AS bigint)) AS pair_checksum
FROM (SELECT TOP (500) * FROM Production.TransactionHistory ORDER BY TransactionID) AS a
CROSS JOIN (SELECT TOP (500) * FROM Sales.SalesOrderDetail ORDER BY SalesOrderID, SalesOrderDetailID) AS b
OPTION (MAXDOP 1)
GO
-- into form: set up, timed, cleaned up
IF OBJECT_ID(N'tempdb..#vnuma_cross') IS NOT NULL DROP TABLE #vnuma_cross
GO
SELECT a.TransactionID, a.ProductID, a.ReferenceOrderID, a.ReferenceOrderLineID, a.TransactionDate, a.TransactionType, a.Quantity, a.ActualCost, a.ModifiedDate,
       b.SalesOrderID, b.SalesOrderDetailID, b.CarrierTrackingNumber, b.OrderQty, b.ProductID AS DetailProductID, b.SpecialOfferID, b.UnitPrice, b.UnitPriceDiscount, b.LineTotal, b.rowguid, b.ModifiedDate AS DetailModifiedDate
INTO #vnuma_cross
FROM (SELECT TOP (500) * FROM Production.TransactionHistory ORDER BY TransactionID) AS a
CROSS JOIN (SELECT TOP (500) * FROM Sales.SalesOrderDetail ORDER BY SalesOrderID, SalesOrderDetailID) AS b
OPTION (MAXDOP 1)
GO
DROP TABLE #vnuma_cross
GO
-- the hint varies over all three forms:
--   (nothing at all: maxdop 0, spool allowed) | OPTION (MAXDOP 4) | OPTION (MAXDOP 1, NO_PERFORMANCE_SPOOL) | OPTION (NO_PERFORMANCE_SPOOL)

-- ============ 5. the actual plan, from an extra untimed run ===========================================
SET STATISTICS XML ON
GO
-- (one of the three forms) -> its own result set first, then a second result set: one row, one column of type xml
-- named "Microsoft SQL Server 2005 XML Showplan". What we read from it (namespace
-- http://schemas.microsoft.com/sqlserver/2004/07/showplan): StmtSimple/@QueryPlanHash, @StatementType, QueryPlan/@DegreeOfParallelism,
-- RelOp/@PhysicalOp (e.g. "Table Spool", "Nested Loops"), @LogicalOp ("Lazy Spool"), @EstimatedExecutionMode,
-- RunTimeCountersPerThread/@ActualExecutionMode, @ActualRows. The inner TOP is normally read from a Table Spool (Lazy Spool);
-- with NO_PERFORMANCE_SPOOL there is none and QueryPlanHash differs.
SET STATISTICS XML OFF
GO
-- ============ additions ===============================================================================
-- (3, master) the state is asked for with the statement of section 1 instead of DB_ID(@P1); also:
SELECT CAST(SERVERPROPERTY(N'IsXTPSupported') AS int) AS supported
GO
SELECT CAST(SERVERPROPERTY(N'InstanceDefaultDataPath') AS nvarchar(260)) AS data_path
GO
SELECT CAST(SERVERPROPERTY(N'ProductVersion') AS nvarchar(128)) AS product_version
GO
-- ============ sent by tests only ======================================================================
SELECT DB_NAME() AS name
GO
SELECT name FROM sys.tables
GO
SELECT name, is_memory_optimized, durability_desc FROM sys.tables
GO
DELETE FROM Sales.SalesOrderDetail WHERE SalesOrderDetailID = 7
GO
CREATE DATABASE [payroll]
GO
DROP DATABASE [payroll]
GO
-- 208 with the table's name:
SELECT * FROM dbo.no_such_table
GO
SELECT COUNT_BIG(*) AS n FROM Production.TransactionHistory
GO
-- 41317 (current database ours, both named in one statement):
INSERT INTO Production.TransactionHistory SELECT * FROM [AdventureWorks2019].Production.TransactionHistory
GO
-- the load against the log:
CREATE DATABASE [vnuma_study]
GO
BACKUP DATABASE [vnuma_study] TO DISK = N'NUL'
GO
BACKUP LOG [vnuma_study] TO DISK = N'NUL'
GO
ALTER DATABASE [vnuma_study] SET DELAYED_DURABILITY = FORCED
GO
ALTER DATABASE [vnuma_study] MODIFY FILE (NAME = N'vnuma_study_log', SIZE = 2419MB)
GO
CREATE RESOURCE POOL vnuma_pool WITH (MAX_MEMORY_PERCENT = 50)
GO
ALTER RESOURCE GOVERNOR RECONFIGURE
GO
DROP RESOURCE POOL vnuma_pool
GO
DECLARE @granted int; EXEC @granted = sys.sp_getapplock @Resource = N'vnuma_start', @LockMode = N'Exclusive', @LockOwner = N'Session', @LockTimeout = 0; SELECT @granted AS granted
