import { byId } from './dom.js';

/** Views, each with an address that can be shared: `#/requests?reason=access-token-invalid`. */
export const views = ['now', 'requests', 'list', 'roll-out', 'system'];
const titles = {
  unknown: 'No such view',
  now: 'Now',
  requests: 'Requests',
  list: 'List',
  'roll-out': 'Roll-out',
  system: 'System',
};

/** The view and parameters of an address; without any, the first view. */
export function readAddress(hash) {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  return {
    view: views.includes(path) ? path : path === '' ? 'now' : 'unknown',
    params: new URLSearchParams(query),
  };
}

/** The address of a view; parameters without a value are left out. */
export function addressOf(view, given = {}) {
  const params = new URLSearchParams(Object.entries(given).filter(([, value]) => value));
  return `#/${view}${params.size > 0 ? `?${params}` : ''}`;
}

/** Shows the view of the address, now and at each change, and calls `onShow(view, params)`. Returns a getter of the view. */
export function startRouter(onShow) {
  let shown;
  const follow = () => {
    // The skip link's target is not a view.
    if (location.hash === '#main') return;
    const { view, params } = readAddress(location.hash);
    const isOther = shown !== undefined && shown !== view;
    shown = view;
    for (const name of [...views, 'unknown']) byId(`view-${name}`).hidden = name !== view;
    for (const link of document.querySelectorAll('nav [data-view]')) {
      if (link.dataset.view === view) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    document.title = `${titles[view]} - shopward console`;
    onShow(view, params);
    if (!isOther) return;
    scrollTo(0, 0);
    byId(`${view}-title`).focus({ preventScroll: true });
  };
  addEventListener('hashchange', follow);
  follow();
  return () => shown;
}
