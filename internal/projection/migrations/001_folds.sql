-- How far each projection has come. It moves in the transaction that has the rows.
CREATE TABLE cursors (
  projection TEXT    NOT NULL PRIMARY KEY,
  seq        INTEGER NOT NULL, -- the last envelope that was folded, all of it
  event      BLOB    NOT NULL, -- the id of its last event: another journal has another one
  time       INTEGER NOT NULL, -- journal time, Unix milliseconds
  events     INTEGER NOT NULL, -- how many were folded
  repeats    INTEGER NOT NULL  -- how many of them had been told before
) STRICT, WITHOUT ROWID;

-- The event ids that are remembered: those of the current generation of journal time
-- and of the one before.
CREATE TABLE seen (
  projection TEXT    NOT NULL,
  id         BLOB    NOT NULL,
  time       INTEGER NOT NULL, -- journal time when it was told first, Unix milliseconds
  PRIMARY KEY (projection, id)
) STRICT, WITHOUT ROWID;
