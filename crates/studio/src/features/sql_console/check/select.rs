//! One SELECT: its list, clauses, grouping and named windows.

use std::collections::BTreeSet;
use std::rc::Rc;

use sqlparser::ast::{
    Distinct, Expr, FunctionArguments, GroupByExpr, NamedWindowDefinition, NamedWindowExpr, Select,
    SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, SelectModifiers,
    WildcardAdditionalOptions,
};

use super::expression::Env;
use super::function;
use super::query::Body;
use super::refusal::Refusal;
use super::scope::{Columns, Ctes, Output, Scope};
use super::{Writer, name, refuse_if};

impl Writer<'_> {
    pub(super) fn select(
        &mut self,
        select: &Select,
        scope: &Scope<'_>,
        ctes: &Ctes<'_>,
    ) -> Result<Body, Refusal> {
        let Select {
            select_token: _,
            optimizer_hints: _,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        refuse_if(into.is_some(), "SELECT INTO")?;
        refuse_if(top.is_some(), "TOP")?;
        refuse_if(exclude.is_some(), "EXCLUDE")?;
        refuse_if(!lateral_views.is_empty(), "LATERAL VIEW")?;
        refuse_if(prewhere.is_some(), "PREWHERE")?;
        refuse_if(!connect_by.is_empty(), "CONNECT BY")?;
        refuse_if(!cluster_by.is_empty(), "CLUSTER BY")?;
        refuse_if(!distribute_by.is_empty(), "DISTRIBUTE BY")?;
        refuse_if(!sort_by.is_empty(), "SORT BY")?;
        refuse_if(qualify.is_some(), "QUALIFY")?;
        refuse_if(value_table_mode.is_some(), "SELECT AS")?;
        refuse_if(*flavor != SelectFlavor::Standard, "A SELECT that begins with FROM")?;
        refuse_if(
            select_modifiers.as_ref().is_some_and(SelectModifiers::is_any_set),
            "A modifier after SELECT",
        )?;

        // The FROM is written after the list, but the list needs what the FROM brings into scope.
        let before = std::mem::take(&mut self.sql);
        let relations = self.relations(from, scope, ctes)?;
        let from_text = std::mem::replace(&mut self.sql, before);

        let inside = Scope::inside(scope, &relations);
        let env = Env { scope: &inside, ctes };
        self.push("SELECT");
        self.distinct(distinct.as_ref(), env)?;
        self.push(if projection.is_empty() { "" } else { " " });
        let mut columns = BTreeSet::new();
        let mut weight = 1;
        self.list(projection, |writer, item| {
            let before = writer.weight;
            writer.item(item, env, &mut columns)?;
            weight = weight.max(writer.weight - before);
            Ok(())
        })?;
        let columns: Columns = Rc::new(columns);
        self.push(&from_text);
        self.clause(" WHERE ", selection.as_ref(), env)?;
        self.group_by(group_by, env, &columns)?;
        self.clause(" HAVING ", having.as_ref(), env)?;
        self.windows(named_window, env)?;
        Ok(Body { output: Output { columns, weight }, relations })
    }

    fn clause(
        &mut self,
        keyword: &str,
        condition: Option<&Expr>,
        env: Env<'_>,
    ) -> Result<(), Refusal> {
        let Some(condition) = condition else { return Ok(()) };
        self.push(keyword);
        self.expression(condition, env)
    }

    fn distinct(&mut self, distinct: Option<&Distinct>, env: Env<'_>) -> Result<(), Refusal> {
        match distinct {
            None | Some(Distinct::All) => Ok(()),
            Some(Distinct::Distinct) => {
                self.push(" DISTINCT");
                Ok(())
            }
            Some(Distinct::On(expressions)) => {
                self.push(" DISTINCT ON (");
                self.expressions(expressions, env)?;
                self.push(")");
                Ok(())
            }
        }
    }

    fn item(
        &mut self,
        item: &SelectItem,
        env: Env<'_>,
        columns: &mut BTreeSet<String>,
    ) -> Result<(), Refusal> {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                columns.extend(output_name(expr)?);
                self.expression(expr, env)
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                self.expression(expr, env)?;
                let alias = name::fold_column(alias)?;
                self.push(" AS ");
                self.push_name(&alias);
                columns.insert(alias);
                Ok(())
            }
            SelectItem::ExprWithAliases { .. } => {
                Err(Refusal::construct("Several aliases for one column"))
            }
            SelectItem::Wildcard(options) => {
                refuse_wildcard_options(options)?;
                columns.extend(env.scope.own_columns().cloned());
                self.weigh(env.scope.heaviest())?;
                self.push("*");
                Ok(())
            }
            SelectItem::QualifiedWildcard(kind, options) => {
                refuse_wildcard_options(options)?;
                let SelectItemQualifiedWildcardKind::ObjectName(relation) = kind else {
                    return Err(Refusal::construct("The fields of a value, (…).*"));
                };
                let parts = name::fold_all(relation)?;
                let relation = unqualified(&parts)
                    .ok_or_else(|| Refusal::construct("A dotted name before .*"))?;
                let found = env.scope.relation(relation)?;
                columns.extend(found.columns.iter().cloned());
                self.weigh(found.weight)?;
                self.push_name(relation);
                self.push(".*");
                Ok(())
            }
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "any other expression groups by itself")]
    fn group_by(
        &mut self,
        group_by: &GroupByExpr,
        env: Env<'_>,
        output: &Columns,
    ) -> Result<(), Refusal> {
        let GroupByExpr::Expressions(items, modifiers) = group_by else {
            return Err(Refusal::construct("GROUP BY ALL"));
        };
        refuse_if(!modifiers.is_empty(), "A modifier after GROUP BY")?;
        if items.is_empty() {
            return Ok(());
        }
        self.push(" GROUP BY ");
        self.list(items, |writer, item| match item {
            Expr::GroupingSets(sets) => writer.grouping("GROUPING SETS", sets, env),
            Expr::Cube(sets) => writer.grouping("CUBE", sets, env),
            Expr::Rollup(sets) => writer.grouping("ROLLUP", sets, env),
            item => writer.output_or_expression(item, env, Some(output)),
        })
    }

    fn grouping(&mut self, keyword: &str, sets: &[Vec<Expr>], env: Env<'_>) -> Result<(), Refusal> {
        self.push(keyword);
        self.push(" (");
        self.list(sets, |writer, set| {
            writer.push("(");
            writer.expressions(set, env)?;
            writer.push(")");
            Ok(())
        })?;
        self.push(")");
        Ok(())
    }

    fn windows(&mut self, windows: &[NamedWindowDefinition], env: Env<'_>) -> Result<(), Refusal> {
        if windows.is_empty() {
            return Ok(());
        }
        self.push(" WINDOW ");
        self.list(windows, |writer, NamedWindowDefinition(window, definition)| {
            let NamedWindowExpr::WindowSpec(spec) = definition else {
                return Err(Refusal::construct("A window that only names another"));
            };
            writer.push_name(&name::fold(window)?);
            writer.push(" AS ");
            writer.window(spec, env)
        })
    }
}

fn refuse_wildcard_options(options: &WildcardAdditionalOptions) -> Result<(), Refusal> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    refuse_if(
        opt_ilike.is_some()
            || opt_exclude.is_some()
            || opt_except.is_some()
            || opt_replace.is_some()
            || opt_rename.is_some()
            || opt_alias.is_some(),
        "A modifier after *",
    )
}

/// `relation` of `relation` or of `console.relation`.
pub(super) fn unqualified(parts: &[String]) -> Option<&str> {
    match parts {
        [relation] => Some(relation),
        [schema, relation] if schema == super::super::catalogue::SCHEMA => Some(relation),
        _ => None,
    }
}

/// The name that PostgreSQL gives a column without AS, where that is plain from the expression.
fn output_name(expr: &Expr) -> Result<Option<String>, Refusal> {
    if let Expr::Nested(inner) = expr {
        return output_name(inner);
    }
    if let Expr::Identifier(ident) = expr {
        return name::fold_column(ident).map(Some);
    }
    if let Expr::CompoundIdentifier(parts) = expr {
        return parts.last().map(name::fold_column).transpose();
    }
    if let Expr::Function(call) = expr
        && !matches!(call.args, FunctionArguments::Subquery(_))
    {
        return function::called(call).map(|called| Some(called.name.to_owned()));
    }
    Ok(None)
}
