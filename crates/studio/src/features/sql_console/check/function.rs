//! Calls: only functions of the list, always with their schema, and the forms with a syntax of
//! their own rewritten as plain calls.

use sqlparser::ast::{
    CeilFloorKind, DateTimeField, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, OrderByExpr, TrimWhereField,
    WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};

use super::expression::Env;
use super::refusal::Refusal;
use super::{Writer, name, refuse_if};
use crate::features::sql_console::functions::{self, Called, Form};

/// What can be asked of a time by EXTRACT.
const EXTRACT_FIELDS: [&str; 22] = [
    "century",
    "day",
    "decade",
    "dow",
    "doy",
    "epoch",
    "hour",
    "isodow",
    "isoyear",
    "julian",
    "microseconds",
    "millennium",
    "milliseconds",
    "minute",
    "month",
    "quarter",
    "second",
    "timezone",
    "timezone_hour",
    "timezone_minute",
    "week",
    "year",
];

/// The function of the list that a call names.
pub(super) fn called(call: &Function) -> Result<&'static Called, Refusal> {
    let parts = name::fold_all(&call.name)?;
    let found = match parts.as_slice() {
        [name] => functions::find(name),
        [schema, name] if schema == "pg_catalog" => {
            functions::find(name).filter(|called| called.form == Form::Call)
        }
        _ => None,
    };
    found.ok_or_else(|| {
        let name = parts.join(".");
        Refusal::because(
            format!("function {name}"),
            format!(
                "Function {name} is not one of those that the console allows; \
                 GET /api/v1/sql/catalogue lists them."
            ),
        )
    })
}

impl Writer<'_> {
    pub(super) fn function(&mut self, call: &Function, env: Env<'_>) -> Result<(), Refusal> {
        let Function {
            name,
            uses_odbc_syntax,
            parameters,
            args,
            within_group,
            filter,
            null_treatment,
            over,
        } = call;
        refuse_if(*uses_odbc_syntax, "An ODBC call")?;
        refuse_if(!matches!(parameters, FunctionArguments::None), "A call with two lists")?;
        refuse_if(null_treatment.is_some(), "IGNORE NULLS or RESPECT NULLS")?;
        if let FunctionArguments::Subquery(query) = args {
            refuse_if(name::fold_all(name)? != ["array"], "A query as the argument of a call")?;
            self.push("ARRAY(");
            self.query(query, env.scope, env.ctes)?;
            self.push(")");
            return Ok(());
        }
        let called = called(call)?;
        match (called.form, args) {
            (Form::Keyword, FunctionArguments::None) => self.push(&called.name.to_uppercase()),
            (Form::Call | Form::Syntax, FunctionArguments::List(list)) => {
                self.push_called(called);
                self.arguments(called, list, env)?;
            }
            _ => return Err(Refusal::construct(format!("This form of {}", called.name))),
        }
        if !within_group.is_empty() {
            self.push(" WITHIN GROUP (ORDER BY ");
            self.order_items(within_group, env)?;
            self.push(")");
        }
        if let Some(condition) = filter {
            self.push(" FILTER (WHERE ");
            self.expression(condition, env)?;
            self.push(")");
        }
        self.over(over.as_ref(), env)
    }

    fn push_called(&mut self, called: &Called) {
        if called.form == Form::Call {
            self.push("\"pg_catalog\".");
            self.push_name(called.name);
        } else {
            self.push(&called.name.to_uppercase());
        }
    }

    fn order_items(&mut self, items: &[OrderByExpr], env: Env<'_>) -> Result<(), Refusal> {
        self.list(items, |writer, item| writer.order_item(item, env, None))
    }

    fn arguments(
        &mut self,
        called: &Called,
        list: &FunctionArgumentList,
        env: Env<'_>,
    ) -> Result<(), Refusal> {
        let FunctionArgumentList { duplicate_treatment, args, clauses } = list;
        self.push("(");
        if *duplicate_treatment == Some(DuplicateTreatment::Distinct) {
            self.push("DISTINCT ");
        }
        self.list(args, |writer, arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => writer.expression(expr, env),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard)
                if called.name == "count" && args.len() == 1 =>
            {
                writer.push("*");
                Ok(())
            }
            FunctionArg::Unnamed(_) => Err(Refusal::construct("* as an argument")),
            FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
                Err(Refusal::construct("An argument passed by name"))
            }
        })?;
        for clause in clauses {
            let FunctionArgumentClause::OrderBy(items) = clause else {
                return Err(Refusal::construct(format!("A clause inside {}", called.name)));
            };
            self.push(" ORDER BY ");
            self.order_items(items, env)?;
        }
        self.push(")");
        Ok(())
    }

    fn over(&mut self, over: Option<&WindowType>, env: Env<'_>) -> Result<(), Refusal> {
        match over {
            None => Ok(()),
            Some(WindowType::NamedWindow(window)) => {
                self.push(" OVER ");
                self.push_name(&name::fold(window)?);
                Ok(())
            }
            Some(WindowType::WindowSpec(spec)) => {
                self.push(" OVER ");
                self.window(spec, env)
            }
        }
    }

    /// Writes a window's definition in its brackets.
    pub(super) fn window(&mut self, spec: &WindowSpec, env: Env<'_>) -> Result<(), Refusal> {
        let WindowSpec { window_name, partition_by, order_by, window_frame } = spec;
        self.push("(");
        if let Some(base) = window_name {
            self.push_name(&name::fold(base)?);
        }
        if !partition_by.is_empty() {
            self.push(" PARTITION BY ");
            self.expressions(partition_by, env)?;
        }
        if !order_by.is_empty() {
            self.push(" ORDER BY ");
            self.order_items(order_by, env)?;
        }
        if let Some(WindowFrame { units, start_bound, end_bound }) = window_frame {
            self.push(match units {
                WindowFrameUnits::Rows => " ROWS ",
                WindowFrameUnits::Range => " RANGE ",
                WindowFrameUnits::Groups => " GROUPS ",
            });
            if let Some(end_bound) = end_bound {
                self.push("BETWEEN ");
                self.frame_bound(start_bound, env)?;
                self.push(" AND ");
                self.frame_bound(end_bound, env)?;
            } else {
                self.frame_bound(start_bound, env)?;
            }
        }
        self.push(")");
        Ok(())
    }

    fn frame_bound(&mut self, bound: &WindowFrameBound, env: Env<'_>) -> Result<(), Refusal> {
        let (distance, direction) = match bound {
            WindowFrameBound::CurrentRow => {
                self.push("CURRENT ROW");
                return Ok(());
            }
            WindowFrameBound::Preceding(distance) => (distance, " PRECEDING"),
            WindowFrameBound::Following(distance) => (distance, " FOLLOWING"),
        };
        match distance {
            None => self.push("UNBOUNDED"),
            Some(distance) => self.expression(distance, env)?,
        }
        self.push(direction);
        Ok(())
    }

    /// EXTRACT, SUBSTRING, TRIM and the like, which PostgreSQL itself turns into calls.
    #[expect(clippy::wildcard_enum_match_arm, reason = "whatever is not listed is refused")]
    pub(super) fn call_syntax(&mut self, expr: &Expr, env: Env<'_>) -> Result<(), Refusal> {
        match expr {
            Expr::Extract { field, syntax: _, expr } => {
                let field = field.to_string().to_ascii_lowercase();
                if !EXTRACT_FIELDS.contains(&field.as_str()) {
                    return Err(Refusal::construct(format!("EXTRACT of {field}")));
                }
                self.push("\"pg_catalog\".\"extract\"(");
                name::write_text(&mut self.sql, &field);
                self.push(", ");
                self.expression(expr, env)?;
                self.push(")");
                Ok(())
            }
            Expr::Ceil { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                self.call("ceil", &[expr], env)
            }
            Expr::Floor {
                expr,
                field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime),
            } => self.call("floor", &[expr], env),
            Expr::Position { expr, r#in } => self.call("position", &[r#in, expr], env),
            Expr::Substring { expr, substring_from, substring_for, special: _, shorthand } => {
                let name = if *shorthand { "substr" } else { "substring" };
                match (substring_from, substring_for) {
                    (Some(from), None) => self.call(name, &[expr, from], env),
                    (Some(from), Some(length)) => self.call(name, &[expr, from, length], env),
                    _ => Err(Refusal::construct("SUBSTRING without FROM")),
                }
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters } => {
                let name = match trim_where {
                    None | Some(TrimWhereField::Both) => "btrim",
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                };
                match (trim_what, trim_characters.as_deref()) {
                    (None, None) => self.call(name, &[expr], env),
                    (Some(what), None) => self.call(name, &[expr, what], env),
                    (None, Some([what])) => self.call(name, &[expr, what], env),
                    _ => Err(Refusal::construct("This form of TRIM")),
                }
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => match overlay_for {
                None => self.call("overlay", &[expr, overlay_what, overlay_from], env),
                Some(length) => {
                    self.call("overlay", &[expr, overlay_what, overlay_from, length], env)
                }
            },
            _ => Err(Refusal::construct("This kind of expression")),
        }
    }

    fn call(&mut self, name: &str, args: &[&Expr], env: Env<'_>) -> Result<(), Refusal> {
        self.push("\"pg_catalog\".");
        self.push_name(name);
        self.push("(");
        self.list(args, |writer, arg| writer.expression(arg, env))?;
        self.push(")");
        Ok(())
    }
}
