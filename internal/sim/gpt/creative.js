// Our own small creative for header bidding line items: the part of Prebid
// Universal Creative's protocol that a banner needs, so that the demo needs no npm.
// https://docs.prebid.org/overview/prebid-universal-creative.html
//
// It asks the page for the markup of hb_adid by "Prebid Request", writes what comes
// back as "Prebid Response" into a frame of its own and reports a "Prebid Event".
window.ucTag = {
  renderAd(doc, data) {
    const first = (key) => (data.targetingMap[key] || [])[0];
    const adId = first('hb_adid');
    const target = new URL(data.pubUrl).origin;
    const send = (message, ports) => window.top.postMessage(JSON.stringify({adId, ...message}), target, ports);

    const report = (info) =>
      send({
        message: 'Prebid Event',
        event: info ? 'adRenderFailed' : 'adRenderSucceeded',
        ...(info ? {info} : {}),
      });

    const show = ({ad, width, height}) => {
      const frame = doc.createElement('iframe');
      frame.width = width;
      frame.height = height;
      frame.scrolling = 'no';
      frame.style.cssText = 'border:0;display:block';
      doc.body.append(frame);
      frame.contentDocument.open();
      frame.contentDocument.write(ad);
      frame.contentDocument.close();
    };

    const channel = new MessageChannel();
    channel.port1.onmessage = (event) => {
      const answer = JSON.parse(event.data);
      if (answer.message !== 'Prebid Response' || answer.adId !== adId) return;
      channel.port1.close();
      if (!answer.ad) {
        report({reason: 'noAd', message: `no markup for ${adId}`});
        return;
      }
      try {
        show(answer);
        report();
      } catch (e) {
        report({reason: 'exception', message: String(e)});
      }
    };
    send({message: 'Prebid Request', adServerDomain: location.origin}, [channel.port2]);
  },
};
