"""Problems that would spoil or break a study, found before the first change."""
