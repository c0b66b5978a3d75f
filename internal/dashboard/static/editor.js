// The editor of a creative as it is being written: the frame follows the form. What a
// form means is decided on the server; without this script, "Preview" asks it the same.
const form = document.querySelector('form.editor');
const frame = document.querySelector('iframe[name="stage"]');
const DELAY_MS = 250;

let timer;
let asking = new AbortController();
let page = 0; // that somebody is at
let dirty = false;

const id = (name) => `f-${name.replaceAll('[', '-').replaceAll(']', '').replaceAll('.', '-')}`;
const control = (name) => document.getElementById(id(name));

/** The form as it would be sent; files only where they have just been chosen. */
const entered = (chosen) => {
  const data = new FormData(form);
  for (const [name, value] of [...data]) if (value instanceof File && name !== chosen) data.delete(name);
  return data;
};

const refresh = async (chosen) => {
  asking.abort();
  asking = new AbortController();
  try {
    const answer = await fetch('/stage/draft', {method: 'POST', body: entered(chosen), signal: asking.signal});
    const {creative, set, notes, errors} = await answer.json();
    for (const [name, value] of Object.entries(set)) control(name).value = value;
    if (chosen) take(chosen, errors[chosen]);
    for (const note of form.querySelectorAll('.hint')) note.textContent = '';
    for (const [name, text] of Object.entries(notes)) document.getElementById(`${id(name)}-note`).textContent = text;
    // The frame has no origin that could be named.
    frame.contentWindow.postMessage({deckleCreative: creative, page}, '*');
  } catch {
    // Nothing is lost: the form has everything, and the next key asks again.
  }
};

/** Shows the picture that has been kept, or why it has not. */
const take = (name, error) => {
  const file = control(name);
  file.setCustomValidity(error ?? '');
  if (error) {
    file.reportValidity();
    return;
  }
  file.value = '';
  const src = control(name.replace(/file$/, 'src'));
  let thumb = src.parentElement.querySelector('.thumb');
  if (!thumb) {
    thumb = Object.assign(new Image(), {className: 'thumb', alt: ''});
    src.after(thumb);
  }
  thumb.src = src.value;
};

form.addEventListener('input', ({target}) => {
  dirty = true;
  clearTimeout(timer);
  if (target.type !== 'file') timer = setTimeout(refresh, DELAY_MS);
});
form.addEventListener('change', ({target}) => {
  if (target.type === 'file' && target.files.length) refresh(target.name);
});
form.addEventListener('focusin', ({target}) => {
  const at = Number(/^pages\[(\d+)\]/.exec(target.name)?.[1] ?? page);
  if (at === page) return;
  page = at;
  refresh();
});
form.addEventListener('submit', ({submitter}) => {
  if (submitter?.formTarget !== 'stage') dirty = false;
});
addEventListener('beforeunload', (event) => {
  if (dirty) event.preventDefault();
});

// A colour can be picked beside where it is written.
for (const text of form.querySelectorAll('input[data-colour]')) {
  const label = `Pick: ${form.querySelector(`label[for="${text.id}"]`).firstChild.textContent.trim()}`;
  const picker = Object.assign(document.createElement('input'), {type: 'color', ariaLabel: label});
  const follow = () => {
    if (/^#[0-9a-f]{6}$/i.test(text.value)) picker.value = text.value;
    picker.classList.toggle('none', !text.value);
  };
  picker.addEventListener('input', () => {
    text.value = picker.value;
    follow();
  });
  text.addEventListener('input', follow);
  follow();
  text.before(picker);
}

// Where a picture is clicked is what stays in view.
form.addEventListener('click', ({target, offsetX, offsetY}) => {
  if (!target.classList.contains('thumb')) return;
  const src = target.parentElement.querySelector('input').name;
  const focus = control(src.replace(/src$/, 'focus'));
  focus.value = `${Math.round((offsetX / target.clientWidth) * 100)} ${Math.round((offsetY / target.clientHeight) * 100)}`;
  focus.dispatchEvent(new Event('input', {bubbles: true}));
});

refresh();
