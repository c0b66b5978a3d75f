// A page of React, for TestHydration: rendered to HTML, and hydrated again, as a whole
// document or as an element of one. What is hydrated stands in the script's query.
import React, {useEffect, useState} from 'react';
import {hydrateRoot} from 'react-dom/client';
import {renderToString} from 'react-dom/server';

const Counter = () => {
  const [n, set] = useState(0);
  useEffect(() => {
    set(1);
    window.hydrated = true;
  }, []);
  return <p>count {n}</p>;
};

const items = Array.from({length: 60}, (_, i) => i);

const Story = () => (
  <main>
    <h1>News</h1>
    <ul>
      {items.map((i) => (
        <li key={i} className={i % 2 ? 'odd' : 'even'}>
          item {i} <b>bold</b> text
        </li>
      ))}
    </ul>
    <Counter />
    <div id="div-top" />
  </main>
);

const Page = ({children}) => (
  <html>
    <head>
      <title>News</title>
      <script defer src="/plain/hydrate.js?document" />
    </head>
    <body>{children}</body>
  </html>
);

window.pages = {
  document: () => `<!doctype html>${renderToString(<Page><Story /></Page>)}`,
  element: () =>
    '<!doctype html><html><head><title>News</title><script defer src="/plain/hydrate.js?element"></script></head>' +
    `<body><div id="root">${renderToString(<Story />)}</div></body></html>`,
};

window.mismatches = [];
const options = {onRecoverableError: (error) => window.mismatches.push(String(error))};
const what = document.currentScript.src.split('?')[1];
if (what === 'document') hydrateRoot(document, <Page><Story /></Page>, options);
if (what === 'element') hydrateRoot(document.getElementById('root'), <Story />, options);
