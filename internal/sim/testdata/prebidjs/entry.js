// Prebid.js as a publisher builds it for Prebid Server: core and one module.
import pbjs from 'prebid.js';
import 'prebid.js/modules/prebidServerBidAdapter.js';

pbjs.processQueue();
