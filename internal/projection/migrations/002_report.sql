-- What happened, by day (UTC), site and creative.
CREATE TABLE report (
  day        TEXT NOT NULL, -- 2006-01-02
  site       TEXT NOT NULL,
  advertiser TEXT NOT NULL,
  campaign   TEXT NOT NULL,
  creative   TEXT NOT NULL,

  impressions INTEGER NOT NULL DEFAULT 0, -- organic: the reader had not bookmarked it
  viewable    INTEGER NOT NULL DEFAULT 0,
  clicks      INTEGER NOT NULL DEFAULT 0,
  cta         INTEGER NOT NULL DEFAULT 0,
  spend       INTEGER NOT NULL DEFAULT 0, -- micros of the site's currency

  dogeared_impressions INTEGER NOT NULL DEFAULT 0, -- re-encounters by a pin
  dogeared_viewable    INTEGER NOT NULL DEFAULT 0,
  dogeared_clicks      INTEGER NOT NULL DEFAULT 0,
  dogeared_cta         INTEGER NOT NULL DEFAULT 0,

  folds   INTEGER NOT NULL DEFAULT 0,
  unfolds INTEGER NOT NULL DEFAULT 0,

  suspects             INTEGER NOT NULL DEFAULT 0, -- events of every kind that count as nothing else
  unbilled_duplicate   INTEGER NOT NULL DEFAULT 0, -- impressions told again; not in impressions
  unbilled_sealed      INTEGER NOT NULL DEFAULT 0, -- impressions that a sealed lease was to pay
  unbilled_exhausted   INTEGER NOT NULL DEFAULT 0, -- impressions for which a lease had not enough left

  PRIMARY KEY (day, site, advertiser, campaign, creative)
) STRICT, WITHOUT ROWID;

CREATE INDEX report_campaign   ON report (campaign, day);
CREATE INDEX report_advertiser ON report (advertiser, day);
CREATE INDEX report_site       ON report (site, day);

-- What each lease of a budget has paid for.
CREATE TABLE leases (
  id     TEXT    NOT NULL PRIMARY KEY,
  line   TEXT    NOT NULL,
  amount INTEGER NOT NULL, -- micros; 0 when the seal came first
  spent  INTEGER NOT NULL, -- micros, at most amount
  sealed INTEGER NOT NULL  -- the envelope of its seal; 0 = open
) STRICT, WITHOUT ROWID;
