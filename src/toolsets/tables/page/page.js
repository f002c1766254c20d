// The page's part of this family: previews of table configurations are drawn as the tables that they make.

import './table.js';
import { field, isObject, text } from '../drawing.js';
import { draws } from '../preview-kinds.js';
import { t } from '../texts.js';

draws({
  kind: 'table_config_preview',
  thing: 'table',
  change: t('Change to the table'),
  addition: t('New table'),
  element: 'sb-table',
  fits: (preview) => text(preview, 'what').includes('table') || isObject(field(preview, 'config')),
  after: (preview) => ({ name: preview?.name, config: preview?.config }),
  draw: (drawing, after, before) => {
    drawing.table = before === undefined ? { after: configOf(after) } : { after: labelled(after), before: labelled(before) };
  },
});

const configOf = (stored) => (isObject(field(stored, 'config')) ? stored.config : stored);

/** A configuration with its label, so that a new name is a change too. */
function labelled(stored) {
  const config = configOf(stored);
  if (config === stored) return config;
  const label = typeof stored.name === 'string' ? { 'saved as': stored.name } : {};
  if (typeof stored.description === 'string' && stored.description !== '') label['saved description'] = stored.description;
  return { ...config, ...label };
}
