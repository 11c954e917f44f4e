import type { Localized } from './products.ts';

export type CategoryNode = {
  readonly nodeId: number;
  readonly parent: number | null;
  readonly name: Localized;
  /** Full path, since names carry characters that a URL would escape. */
  readonly url: Localized;
};

function node(nodeId: number, parent: number | null, en: string, de: string, url: Localized): CategoryNode {
  return { nodeId, parent, name: { en, de }, url };
}

const cameras = { en: '/en/cameras-&-camcorders', de: '/de/kameras-&-camcorder' };

/** The same path in both languages. */
function alike(path: string): Localized {
  return { en: `/en${path}`, de: `/de${path}` };
}

function inCameras(en: string, de: string): Localized {
  return { en: `${cameras.en}/${en}`, de: `${cameras.de}/${de}` };
}

/** Real shops have raw `&` and `'` in the URLs of their categories. */
export const categoryNodes: readonly CategoryNode[] = [
  node(1, null, 'Demoshop', 'Demoshop', alike('')),
  node(2, 1, 'Cameras & Camcorders', 'Kameras & Camcorder', cameras),
  node(3, 2, 'Digital Cameras', 'Digitalkameras', inCameras('digital-cameras', 'digitalkameras')),
  node(4, 2, 'Camcorders', 'Camcorder', inCameras('camcorders', 'camcorder')),
  node(5, 1, 'Computer', 'Computer', alike('/computer')),
  node(6, 5, 'Notebooks', 'Notebooks', alike('/computer/notebooks')),
  node(7, 5, "Pc's/Workstations", "Pc's/Workstations", alike("/computer/pc's/workstations")),
  node(8, 5, 'Tablets', 'Tablets', alike('/computer/tablets')),
  node(9, 1, 'Office', 'Büro', { en: '/en/office', de: '/de/buero' }),
];

/** A page is found in its stores only: the same URL can be 200 in one store and 404 in another. */
function page(id: string, en: string, de: string, ...stores: readonly string[]) {
  return { id, url: { en: `/en/${en}`, de: `/de/${de}` }, stores };
}

export type CmsPage = ReturnType<typeof page>;

export const cmsPages: readonly CmsPage[] = [
  page('8d378933-22f9-54c7-b45e-db68f2d5d9a3', 'return-policy', 'rueckgabe', 'DE', 'AT'),
  page('1e9fb640-9073-55f4-a2d2-535090c92025', 'privacy', 'datenschutz', 'DE', 'AT'),
  page('10014bd9-4bba-5a54-b84f-31b4b7efd064', 'pick-up-in-vienna', 'abholung-in-wien', 'AT'),
];

/** Old URL -> new URL, which may itself be unknown (then the old one is unknown too). */
export const urlRedirects: Readonly<Record<string, string>> = {
  '/en/old-canon-ixus': '/en/canon-ixus-160-1',
  '/de/alte-canon-ixus': '/de/canon-ixus-160-1',
  '/en/elsewhere': '/en/nowhere',
};

export const stores = [
  { id: 'DE', country: 'Germany' },
  { id: 'AT', country: 'Austria' },
];
