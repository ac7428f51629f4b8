"""What vnuma believes of SQL Server and vSphere: a pytest suite for the lab, recordings and real servers."""
