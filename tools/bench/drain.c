/* A bare ODBC loop: what draining a result costs without Python and without vnuma.
 *
 * Standard input: the connection string (it holds the password, so it is no argument), the statement,
 * then one line for each execution. Standard output: "ready", then a line for each: nanoseconds,
 * nanoseconds of this process's CPU, rows. Build: cc -O2 drain.c -lodbc
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sql.h>
#include <sqlext.h>

enum { LINE = 65536 };

static SQLHENV env;
static SQLHDBC dbc;

static void fail(SQLSMALLINT kind, SQLHANDLE handle, const char *what)
{
    SQLCHAR state[6], text[1024];
    SQLINTEGER number;
    SQLSMALLINT length;

    fprintf(stderr, "%s failed", what);
    if (SQL_SUCCEEDED(SQLGetDiagRec(kind, handle, 1, state, &number, text, sizeof text, &length)))
        fprintf(stderr, ": %s %d %s", state, (int)number, text);
    fputc('\n', stderr);
    exit(1);
}

static int line(char *into)
{
    if (!fgets(into, LINE, stdin))
        return 0;
    into[strcspn(into, "\n")] = 0;
    return 1;
}

static long long now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Execute, and pass every result without fetching a row of it. */
static void drain(char *statement)
{
    SQLHSTMT stmt;
    SQLRETURN rc;
    SQLLEN rows = -1;
    long long start, cpu;

    if (!SQL_SUCCEEDED(SQLAllocHandle(SQL_HANDLE_STMT, dbc, &stmt)))
        fail(SQL_HANDLE_DBC, dbc, "SQLAllocHandle");
    start = now(CLOCK_MONOTONIC);
    cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    if (!SQL_SUCCEEDED(SQLExecDirect(stmt, (SQLCHAR *)statement, SQL_NTS)))
        fail(SQL_HANDLE_STMT, stmt, "SQLExecDirect");
    while (SQL_SUCCEEDED(rc = SQLMoreResults(stmt)))
        ;
    start = now(CLOCK_MONOTONIC) - start;
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    if (rc != SQL_NO_DATA)
        fail(SQL_HANDLE_STMT, stmt, "SQLMoreResults");
    SQLFreeHandle(SQL_HANDLE_STMT, stmt);

    /* Untimed: a driver may hide an error inside a discarded result. */
    SQLAllocHandle(SQL_HANDLE_STMT, dbc, &stmt);
    if (!SQL_SUCCEEDED(SQLExecDirect(stmt, (SQLCHAR *)"SELECT ROWCOUNT_BIG()", SQL_NTS)) ||
        !SQL_SUCCEEDED(SQLFetch(stmt)) ||
        !SQL_SUCCEEDED(SQLGetData(stmt, 1, SQL_C_SBIGINT, &rows, sizeof rows, NULL)))
        fail(SQL_HANDLE_STMT, stmt, "ROWCOUNT_BIG()");
    SQLFreeHandle(SQL_HANDLE_STMT, stmt);
    printf("%lld %lld %lld\n", start, cpu, (long long)rows);
    fflush(stdout);
}

int main(void)
{
    static char connection[LINE], statement[LINE], go[LINE];

    if (!line(connection) || !line(statement))
        return 2;
    SQLAllocHandle(SQL_HANDLE_ENV, SQL_NULL_HANDLE, &env);
    SQLSetEnvAttr(env, SQL_ATTR_ODBC_VERSION, (SQLPOINTER)SQL_OV_ODBC3, 0);
    SQLAllocHandle(SQL_HANDLE_DBC, env, &dbc);
    if (!SQL_SUCCEEDED(SQLDriverConnect(dbc, NULL, (SQLCHAR *)connection, SQL_NTS, NULL, 0, NULL,
                                        SQL_DRIVER_NOPROMPT)))
        fail(SQL_HANDLE_DBC, dbc, "SQLDriverConnect");
    puts("ready");
    fflush(stdout);
    while (line(go))
        drain(statement);
    SQLDisconnect(dbc);
    return 0;
}
